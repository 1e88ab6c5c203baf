"""What messages occupy on links, and the latencies of their paths: one row for all that are alike.

A message that is alone takes as long as arithmetic says (emu/measure/bound.py). The part in which
its slowest link is busy with it is its transfer; the rest is latency, which other traffic does not
change here. Its sender knows that it is over when the acknowledgement has come back.

    posted ── NIC reads it ──▶ transfer ── first packet's way, last packet's way ──▶ in memory
                                                    acknowledgement's way ─────────▶ completed

A READ's request travels before, and its completion comes with its last byte. A message of an
unreliable transport is completed when it has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from emu.flow_model.network import Network, Way
from emu.flow_model.routes import Column
from emu.measure.bound import INFINIBAND, overhead_of
from emu.spec.host import Nic
from emu.spec.host_path import HostPath
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import transport_of
from topologies.graph import Topology
from traffic.graph import Flow, OperationGraph
from traffic.verb import Verb

_ATOMIC_BYTES = 8


class Shape(NamedTuple):
    """As `struct flow_shape` in the core."""

    wire_bytes: float
    size_bytes: int
    lead_ps: int
    deliver_ps: int
    complete_ps: int
    alone_ps: int
    busy_ps: int
    duration_ps: int


class _Kind(NamedTuple):
    """What the latencies of a flow's messages depend on, besides their size."""

    way: int
    mtu_bytes: int
    verb: Verb
    reliable: bool
    inside: bool
    sender: HostPath | None
    """The path at the host that posts, unless the message stays within a server."""
    receiver: HostPath | None


@dataclass(frozen=True)
class Shapes:
    """The shapes of a workload, and which one each operation has."""

    shapes: tuple[Shape, ...]
    of: Column


def shapes_of(spec: Spec, topology: Topology, graph: OperationGraph, network: Network) -> Shapes:
    """The shapes of all operations of a workload.

    Neighbours are mostly alike, so only the first operation of each run of equal ones is looked at.
    """
    kinds = _Kinds(spec, topology, graph, network)
    kind = kinds.of_flow[graph.flow_of]
    every = (kind, graph.size_bytes, graph.lasts_ns, graph.busy_ps)
    begins = np.zeros(len(kind), bool)
    begins[:1] = True
    for column in every:
        begins[1:] |= column[1:] != column[:-1]
    heads = np.flatnonzero(begins)
    rows, of = np.unique(np.stack([c[heads] for c in every], axis=1), axis=0, return_inverse=True)
    lengths = np.diff(heads, append=len(kind))
    shapes = tuple(kinds.shape(*row) for row in rows.tolist())
    return Shapes(shapes, np.repeat(of.reshape(-1), lengths))


class _Kinds:
    def __init__(
        self, spec: Spec, topology: Topology, graph: OperationGraph, network: Network
    ) -> None:
        self._spec, self._network = spec, network
        self._overhead = overhead_of(spec, topology)
        self._reliable = {entry.name: transport_of(entry) == "rc" for entry in spec.traffic}
        columns, hosts = graph.columns, [spec.host(host) for host in graph.columns.hosts]
        numbers: dict[tuple[int, HostPath | None], int] = {}
        kind_of_host = np.array(
            [numbers.setdefault((host.nic.mtu, host.path), len(numbers)) for host in hosts],
            np.int64,
        )
        key = network.way_of_flow + 1
        key = key * (1 + columns.verb.max(initial=0)) + columns.verb
        key = key * 2 + columns.of_traffic(self._is_reliable)
        key = key * 2 + (columns.src == columns.dst)
        for ends in (columns.src, columns.dst):
            key = key * len(numbers) + kind_of_host[ends]
        _, first, of_flow = np.unique(key, return_index=True, return_inverse=True)
        self._kinds = [
            self._kind(graph.flows[n], int(network.way_of_flow[n])) for n in first.tolist()
        ]
        self.of_flow: Column = of_flow.reshape(-1)
        """The number of each flow's kind."""

    def _is_reliable(self, traffic: str) -> bool:
        return self._reliable.get(traffic, True)

    def _kind(self, flow: Flow, way: int) -> _Kind | None:
        """None: it is work."""
        if flow.verb is Verb.COMPUTE:
            return None
        src, dst = self._spec.host(flow.src), self._spec.host(flow.dst)
        inside = self._spec.in_one_server(flow.src, flow.dst) or flow.src == flow.dst
        return _Kind(
            way=way,
            mtu_bytes=Nic().mtu if inside else min(src.nic.mtu, dst.nic.mtu),
            verb=flow.verb,
            reliable=self._is_reliable(flow.traffic),
            inside=inside,
            sender=None if inside else src.path,
            receiver=None if inside else dst.path,
        )

    def shape(self, kind: int, size_bytes: int, lasts_ns: int, busy_ps: int) -> Shape:
        """The shape of operations of this kind and size."""
        own = self._kinds[kind]
        if own is None:
            return Shape(0.0, 0, 0, 0, 0, 0, busy_ps, lasts_ns * 1000)
        if own.way < 0:
            return Shape(float(max(1, size_bytes)), size_bytes, 0, 0, 0, 0, 0, 0)
        return self._message(own, self._network.ways[own.way], size_bytes)

    def _message(self, kind: _Kind, way: Way, size_bytes: int) -> Shape:
        overhead = INFINIBAND if kind.inside else self._overhead
        carried = _ATOMIC_BYTES if kind.verb.is_atomic else size_bytes
        alone = way.paths.alone_along(way.there, carried, kind.mtu_bytes, kind.verb)
        latency_ps = alone.took_ps - alone.transfer_ps
        lead_ps = 0
        if kind.sender:
            lead_ps += kind.sender.before_message_ps(size_bytes, fetches=kind.verb.fetches)
        if kind.verb.fetches:
            lead_ps += way.paths.packet_ps(way.back, overhead.request)
            lead_ps += kind.receiver.read_ps if kind.receiver else 0
            to_memory, back_ps = kind.sender, 0
        else:
            to_memory, back_ps = kind.receiver, way.paths.packet_ps(way.back, overhead.ack)
        after_ps = to_memory.after_message_ps(size_bytes) if to_memory else 0
        seen_ps = kind.sender.completion_ps if kind.sender else 0
        complete_ps = latency_ps + back_ps + (after_ps if kind.verb.fetches else 0)
        return Shape(
            wire_bytes=float(alone.wire_bytes),
            size_bytes=size_bytes,
            lead_ps=lead_ps,
            deliver_ps=latency_ps + after_ps,
            complete_ps=(complete_ps if kind.reliable else 0) + seen_ps,
            alone_ps=alone.transfer_ps,
            busy_ps=0,
            duration_ps=0,
        )
