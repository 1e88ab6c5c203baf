"""Brings together what the processes of a run over several have observed.

Every process runs some parts of the fabric (api/mail_bytes.h). The first one gets the tables of
ports piece by piece, from each process the rows or columns of its own ports, so that no other
process has a table of all. Of small things each process sets what is not its own to zero, and the
sum over all processes is what one process would have observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from emu._core import lib
from emu.bindings.fabric import Fabric, samples_of
from emu.bindings.host_nics import HostNics
from emu.measure.counter_table import PORT
from emu.measure.observation import Observation, Samples
from emu.measure.raw_counters import CounterTable
from emu.measure.records import FaultRecord
from traffic.graph import Column

T = TypeVar("T")
_PIECE_CELLS = 1 << 19
"""Of a table, in a piece: 4 MB."""
_NUMBERS = ("packets_seen", "hits", "packets_dropped")
"""What a fault counts."""
_OF_SENDER = (
    *("started_ps", "first_sent_ps", "completed_ps", "retransmitted_packets"),
    "status",
)
_OF_RECEIVER = ("delivered_ps", "delivered_bytes")
"""The fields of a message's record, by who knows them."""


class Gatherer(Protocol):
    """Carries arrays from all processes to the first. All call the same methods in turn."""

    @property
    def is_first(self) -> bool: ...

    def add_up(self, array: NDArray[Any]) -> None:
        """The first process's array becomes the sum of all."""

    def collect(self, own: Iterable[T]) -> Iterator[T]:
        """In the first process: its own pieces, then those of the others. The others get none."""

    def fetch(self, array: NDArray[np.uint8], *, is_own: bool) -> None:
        """The first process's array becomes that of the one process for which `is_own` is true."""


def gather(
    fabric: Fabric, hosts: HostNics, gatherer: Gatherer, *, is_over: bool
) -> Observation | None:
    """What all processes have observed, in the first; None in the others. The run can go on."""
    seen = _gather_fabric(fabric, gatherer, is_over=is_over)
    nics = hosts.counter_cells()
    gatherer.add_up(nics)
    for host, is_own in own_hosts(fabric).items():
        for memory in hosts.written_memory(host):
            gatherer.fetch(memory, is_own=is_own)
    with _whole_records(fabric, hosts, gatherer):
        if seen is None:
            return None
        return replace(hosts.observe(seen), nics=hosts.named_counters(nics))


def own_hosts(fabric: Fabric) -> dict[str, bool]:
    """Whether this process runs each host."""
    return {host: fabric.has_node(host) for host in fabric.topology.host}


def _gather_fabric(fabric: Fabric, gatherer: Gatherer, *, is_over: bool) -> Observation | None:
    name = fabric.topology.port_name
    indices = {name[port]: index for port, index in fabric.index.items()}
    ports = _gather_counters(fabric, indices, gatherer)
    inside = fabric.inside.ports if fabric.inside else {}
    scale_up = _gather_counters(fabric, inside, gatherer)
    samples = _gather_samples(fabric, gatherer, is_over=is_over)
    faults = _gather_faults(tuple(fault.record() for fault in fabric.faults), gatherer)
    exhausted = lib.fabric_frames_exhausted(fabric.core)
    counts = np.array([exhausted, fabric.captures_missed], np.int64)
    gatherer.add_up(counts)
    if not gatherer.is_first:
        return None
    return replace(
        fabric.observation(ports=ports, scale_up=scale_up, samples=samples),
        faults=faults,
        frames_exhausted=int(counts[0]),
        captures_missed=int(counts[1]),
    )


def _gather_counters(
    fabric: Fabric, indices: Mapping[str, int], gatherer: Gatherer
) -> CounterTable:
    """The counters of ports, given as name -> index, in the first process."""
    width, index = sum(PORT.cells.values()), [*indices.values()]
    own = [row for row, at in enumerate(index) if lib.fabric_runs(fabric.core, at)]
    step = _PIECE_CELLS // width
    pieces = (own[start : start + step] for start in range(0, len(own), step))
    cells = np.zeros((len(index) if gatherer.is_first else 0, width), np.int64)
    for rows, piece in gatherer.collect(
        (rows, fabric.counter_cells([index[row] for row in rows])) for rows in pieces
    ):
        cells[rows] = piece
    return CounterTable(tuple(indices), PORT.cells, cells)


def _gather_samples(fabric: Fabric, gatherer: Gatherer, *, is_over: bool) -> Samples:
    """Every process has samples of its own ports and flows. All have the same times."""
    table, order = fabric.sampled(and_now=is_over)
    own = np.flatnonzero([fabric.has_node(port.node) for port in fabric.index])
    ends = 1 + len(own) * lib.GAUGES
    shape = (len(order), len(fabric.index)) if gatherer.is_first else (0, 0)
    quantities = np.zeros((lib.GAUGES, *shape), np.int64)
    flow_bytes = np.zeros((shape[0], table.shape[1] - ends), np.int64)
    step = max(1, _PIECE_CELLS // table.shape[1])
    pieces = ((at, table[order[at : at + step]]) for at in range(0, len(order), step))
    for first, columns, gauges, flows in gatherer.collect(
        (at, own, rows[:, 1:ends], rows[:, ends:]) for at, rows in pieces
    ):
        flow_bytes[first : first + len(flows)] += flows
        for row, cells in enumerate(gauges, first):
            quantities[:, row, columns] = cells.reshape(-1, lib.GAUGES).T
    name = fabric.topology.port_name
    times = table[order[: shape[0]], 0]
    return samples_of(times, [name[port] for port in fabric.index], quantities, flow_bytes)


def _gather_faults(faults: tuple[FaultRecord, ...], gatherer: Gatherer) -> tuple[FaultRecord, ...]:
    counts = np.array([[getattr(own, name) for name in _NUMBERS] for own in faults], np.int64)
    gatherer.add_up(counts)
    return tuple(
        replace(own, **dict(zip(_NUMBERS, row, strict=True)))
        for own, row in zip(faults, counts.tolist(), strict=True)
    )


@contextmanager
def _whole_records(fabric: Fabric, hosts: HostNics, gatherer: Gatherer) -> Iterator[None]:
    """While the body runs, the first process's records of messages, and counts of bytes, are those
    of all. The core goes on with its own."""
    delivered = delivered_here(fabric, hosts)
    gatherer.add_up(delivered)
    columns = _gathered_records(fabric, hosts, gatherer)
    if not gatherer.is_first:
        for _ in columns:
            pass
        yield
        return
    records, counts = hosts.records(), hosts.delivered()
    own_records, own_counts = records.copy(), counts.copy()
    counts[:] = delivered
    for name, column in columns:
        records[name] = column
    try:
        yield
    finally:
        records[:], counts[:] = own_records, own_counts


def _gathered_records(
    fabric: Fabric, hosts: HostNics, gatherer: Gatherer
) -> Iterator[tuple[str, Column]]:
    """The columns of the records, in the first process those of all."""
    graph, records = hosts.graph, hosts.records()
    own = own_hosts(fabric)
    at_sender = np.array([own[flow.src] for flow in graph.flows], np.bool_)[graph.flow_of]
    at_receiver = np.array([own[flow.bytes_to] for flow in graph.flows], np.bool_)[graph.flow_of]
    for names, is_own in ((_OF_SENDER, at_sender), (_OF_RECEIVER, at_receiver)):
        for name in names:
            column = np.where(is_own, records[name], 0).astype(np.int64)
            gatherer.add_up(column)
            yield name, column


def delivered_here(fabric: Fabric, hosts: HostNics) -> Column:
    """The bytes delivered to hosts of this process so far, for each flow."""
    own = own_hosts(fabric)
    is_own = np.array([own[host] for host in hosts.flow_hosts], np.bool_)
    return np.where(is_own, hosts.delivered(), 0)
