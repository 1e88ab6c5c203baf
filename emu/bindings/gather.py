"""Brings together what the processes of a run over several have observed.

Every process has the whole fabric and runs some of its parts (api/mail_bytes.h). What it knows of
the others' nodes is how they began. So each process sets what is not its own to zero, and the sum
over all processes is what one process would have observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emu._core import lib
from emu.bindings.fabric import Fabric
from emu.bindings.host_nics import HostNics
from emu.measure.observation import Observation, Samples
from emu.measure.raw_counters import CounterTable, RawCounters
from emu.measure.recording import FaultRecord
from traffic.graph import Column

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

    def fetch(self, array: NDArray[np.uint8], *, is_own: bool) -> None:
        """The first process's array becomes that of the one process for which `is_own` is true."""


def gather(
    fabric: Fabric, hosts: HostNics, gatherer: Gatherer, *, is_over: bool
) -> Observation | None:
    """What all processes have observed, in the first; None in the others. The run can go on."""
    seen = _gather_fabric(fabric, gatherer, is_over=is_over)
    own = own_hosts(fabric)
    nics = np.where(own[:, None], hosts.counter_cells(), 0)
    gatherer.add_up(nics)
    for host, is_own in zip(fabric.topology.hosts, own.tolist(), strict=True):
        for memory in hosts.written_memory(host.name):
            gatherer.fetch(memory.view(np.uint8), is_own=is_own)
    with _whole_records(fabric, hosts, gatherer):
        if not gatherer.is_first:
            return None
        return replace(hosts.observe(seen), nics=hosts.named_counters(nics))


def own_hosts(fabric: Fabric) -> NDArray[np.bool_]:
    """Whether this process runs each host."""
    ports = fabric.topology.ports
    own = [fabric.runs(ports[host.name][0]) for host in fabric.topology.hosts]
    return np.array(own, np.bool_)


def _gather_fabric(fabric: Fabric, gatherer: Gatherer, *, is_over: bool) -> Observation:
    seen = fabric.observe(is_over=is_over)
    counts = np.array([seen.frames_exhausted, seen.captures_missed], np.int64)
    gatherer.add_up(counts)
    inside = fabric.inside.ports.values() if fabric.inside else ()
    return replace(
        seen,
        ports=_gather_ports(fabric, seen.ports, fabric.index.values(), gatherer),
        scale_up=_gather_ports(fabric, seen.scale_up, inside, gatherer),
        samples=_gather_samples(seen.samples, gatherer),
        faults=_gather_faults(seen.faults, gatherer),
        frames_exhausted=int(counts[0]),
        captures_missed=int(counts[1]),
    )


def _gather_ports(
    fabric: Fabric,
    ports: Any,
    indices: Iterable[int],
    gatherer: Gatherer,
) -> CounterTable | dict[str, RawCounters]:
    """`indices`: of the ports, in their order."""
    if not ports:
        return {}
    assert isinstance(ports, CounterTable)
    own = np.array([lib.fabric_runs(fabric.core, index) for index in indices], np.bool_)
    cells = np.where(own[:, None], ports.cells, 0)
    gatherer.add_up(cells)
    return replace(ports, cells=cells)


def _gather_samples(samples: Samples, gatherer: Gatherer) -> Samples:
    """A process leaves the columns of others' ports and flows at zero. All have the same times."""
    whole: dict[str, Any] = {}
    for field in fields(samples):
        values = getattr(samples, field.name)
        if field.name not in ("time_ns", "ports"):
            whole[field.name] = np.ascontiguousarray(values)
            gatherer.add_up(whole[field.name])
    return replace(samples, **whole)


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
    records, delivered = hosts.records(), hosts.delivered()
    own_records, own_delivered = records.copy(), delivered.copy()
    _gather_records(fabric, hosts, gatherer)
    delivered[:] = delivered_here(fabric, hosts)
    gatherer.add_up(delivered)
    try:
        yield
    finally:
        records[:], delivered[:] = own_records, own_delivered


def _gather_records(fabric: Fabric, hosts: HostNics, gatherer: Gatherer) -> None:
    graph, records = hosts.graph, hosts.records()
    own = dict(zip(fabric.topology.host, own_hosts(fabric).tolist(), strict=True))
    at_sender = np.array([own[flow.src] for flow in graph.flows], np.bool_)[graph.flow_of]
    at_receiver = np.array([own[flow.bytes_to] for flow in graph.flows], np.bool_)[graph.flow_of]
    for names, is_own in ((_OF_SENDER, at_sender), (_OF_RECEIVER, at_receiver)):
        for name in names:
            column = np.where(is_own, records[name], 0).astype(np.int64)
            gatherer.add_up(column)
            records[name] = column


def delivered_here(fabric: Fabric, hosts: HostNics) -> Column:
    """The bytes delivered to hosts of this process so far, for each flow."""
    own = dict(zip(fabric.topology.host, own_hosts(fabric).tolist(), strict=True))
    is_own = np.array([own[host] for host in hosts.flow_hosts], np.bool_)
    return np.where(is_own, hosts.delivered(), 0)
