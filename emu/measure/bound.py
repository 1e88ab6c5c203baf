"""The earliest a workload can possibly be over: arithmetic, no emulation.

A link of rate C that n messages of S bytes must cross is busy for
n * wire_bytes(S) / C; nothing crosses it before the first sender's first packet
got there, and the last packet still has the rest of its path before it:

    ├─ head ─┼────────── bytes that must cross / C ──────────┼─ tail ─┤
    start    first packet reaches the link      last bit leaves it    in memory

The bound is the latest such end over all links of the fabric. Where a flow may
take any of several equal ports (ECMP), their rates count together, as if its
bytes could be spread perfectly; so the bound holds for every choice of paths.
Acknowledgements, retransmissions and waiting come on top: a run is never
faster, and a good one is a few per cent slower.

Everything is in picoseconds; the bound is rounded down to a nanosecond.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from emu.spec.model import Spec
from emu.units import PS_PER_NS
from topologies.graph import Port, Topology
from traffic.graph import Flow, OperationGraph, Verb

BYTE_PS_AT_1_BPS = 8_000_000_000_000
"""Picoseconds that a byte takes on a link of one bit per second."""


@dataclass(frozen=True)
class Framing:
    """What a packet occupies on a link beside its payload, in bytes."""

    overhead: int
    """Every data packet: headers, padding aside, and on Ethernet preamble, FCS and gap."""
    address_overhead: int
    """The first packet of a WRITE as well: its RETH."""
    header: int
    """As much as a cut-through switch waits for before it passes a packet on."""


ROCE_V2 = Framing(overhead=82, address_overhead=16, header=64)
"""Ethernet 14 + IPv4 20 + UDP 8 + BTH 12 + ICRC 4, and 24 of preamble, FCS and gap."""
INFINIBAND = Framing(overhead=26, address_overhead=16, header=20)
"""LRH 8 + BTH 12 + ICRC 4 + VCRC 2."""
INFINIBAND_GLOBAL = Framing(overhead=66, address_overhead=16, header=20)
"""With a GRH, 40."""


@dataclass(frozen=True)
class Fabric:
    """All the bound needs to know of a fabric's configuration. Switches by name, hosts by name."""

    framing: Framing
    mtu_bytes: Mapping[str, int]
    latency_ps: Mapping[str, int]
    cut_through: frozenset[str]


@dataclass(frozen=True)
class Bound:
    """No run is over before `last_finish_ns`, because `link` cannot carry its bytes faster."""

    last_finish_ns: int
    link: str
    """Name of its sending port; several equal ones are joined by ` + `."""


@dataclass(frozen=True)
class Batch:
    """So many equal messages of one pair. A collective has millions, but few that differ."""

    src: str
    dst: str
    verb: Verb
    size_bytes: int
    not_before_ns: int = 0
    count: int = 1


@dataclass(frozen=True)
class _Crossing:
    """A batch as one link sees it."""

    head_ps: int
    """When its first bit can be there at the earliest."""
    wire_bytes: int
    tail_ps: int
    """From its last bit leaving the link to the receiver's memory."""


Stage = tuple[Port, ...]
"""The sending ports of one hop: all those that a shortest path may use."""


def fabric_of(spec: Spec, topology: Topology) -> Fabric:
    """The part of a spec that the bound depends on."""
    switches = {switch.name: spec.switch(switch.name) for switch in topology.switches}
    return Fabric(
        framing=framing_of(spec, topology),
        mtu_bytes={host.name: spec.host(host.name).nic.mtu for host in topology.hosts},
        latency_ps={name: switch.latency_ps for name, switch in switches.items()},
        cut_through=frozenset(filter(spec.cuts_through, switches)),
    )


def framing_of(spec: Spec, topology: Topology) -> Framing:
    """The least that any host's packets have."""
    if spec.fabric == "roce":
        return ROCE_V2
    is_global = all(spec.host(host.name).nic.global_route for host in topology.hosts)
    return INFINIBAND_GLOBAL if is_global else INFINIBAND


def batches_of(graph: OperationGraph, flows: Iterable[Flow]) -> Iterator[Batch]:
    """The messages of some flows of a workload, equal ones of a flow together."""
    for flow in flows:
        own = slice(flow.operations.start, flow.operations.stop)
        rows = np.stack([graph.size_bytes[own], graph.not_before_ns[own]])
        kinds, counts = np.unique(rows, axis=1, return_counts=True)
        for (size_bytes, not_before_ns), count in zip(kinds.T.tolist(), counts, strict=True):
            yield Batch(
                flow.bytes_from, flow.bytes_to, flow.verb, size_bytes, not_before_ns, int(count)
            )


def last_finish_bound(topology: Topology, batches: Iterable[Batch], fabric: Fabric) -> Bound | None:
    """The bound and the link that sets it; None when nothing crosses the fabric."""
    crossings: dict[Stage, list[_Crossing]] = defaultdict(list)
    for batch in batches:
        for stage, crossing in _crossings(topology, batch, fabric):
            crossings[stage].append(crossing)
    if not crossings:
        return None
    finish_ps = {
        stage: _finish_ps(own, rate_bps=sum(topology.cable[port].rate_bps for port in stage))
        for stage, own in crossings.items()
    }
    slowest = max(finish_ps, key=lambda stage: finish_ps[stage])
    return Bound(finish_ps[slowest] // PS_PER_NS, _stage_name(topology, slowest))


def packet_wire_bytes(size_bytes: int, mtu_bytes: int, verb: Verb, framing: Framing) -> list[int]:
    """What each packet of a message occupies on a link, first to last."""
    packets = max(1, -(-size_bytes // mtu_bytes))
    payloads = [mtu_bytes] * (packets - 1) + [size_bytes - mtu_bytes * (packets - 1)]
    sizes = [_padded(payload) + framing.overhead for payload in payloads]
    if verb in (Verb.WRITE, Verb.WRITE_IMM):
        sizes[0] += framing.address_overhead
    return sizes


def _padded(payload_bytes: int) -> int:
    """Payloads are padded to whole 4-byte words (IBTA vol 1, 9.2)."""
    return -(-payload_bytes // 4) * 4


def _finish_ps(crossings: list[_Crossing], *, rate_bps: int) -> int:
    """When a link of this rate can have passed all of them on to their receivers.

    Also true for every subset; those that matter are the messages from some
    moment on, because a link may idle before a late start.
    """
    finish_ps, wire_bytes, tail_ps = 0, 0, crossings[0].tail_ps
    for crossing in sorted(crossings, key=lambda crossing: -crossing.head_ps):
        wire_bytes += crossing.wire_bytes
        tail_ps = min(tail_ps, crossing.tail_ps)
        busy_ps = wire_bytes * BYTE_PS_AT_1_BPS // rate_bps
        finish_ps = max(finish_ps, crossing.head_ps + busy_ps + tail_ps)
    return finish_ps


def _crossings(
    topology: Topology, batch: Batch, fabric: Fabric
) -> Iterator[tuple[Stage, _Crossing]]:
    """Everything that a batch must cross, and when at the earliest."""
    stages = _stages(topology, batch.src, batch.dst)
    mtu_bytes = fabric.mtu_bytes[batch.src]
    packets = packet_wire_bytes(batch.size_bytes, mtu_bytes, batch.verb, fabric.framing)
    first, last = packets[0], packets[-1]
    first_hops, last_hops = (_hops_ps(topology, stages, packet, fabric) for packet in (first, last))
    for place, stage in enumerate(stages):
        before, onward = first_hops[:place], last_hops[place:]
        yield (
            stage,
            _Crossing(
                head_ps=batch.not_before_ns * PS_PER_NS + sum(before),
                wire_bytes=sum(packets) * batch.count,
                tail_ps=sum(onward) - _serialisation_ps(topology, stage, last),
            ),
        )


def _stages(topology: Topology, src: str, dst: str) -> list[Stage]:
    """The hops from `src` to `dst`; none when there is no way."""
    if src == dst:
        return []
    stages: list[Stage] = []
    nodes = [src]
    while nodes and dst not in nodes:
        ports = [port for node in nodes for port in _ports_towards(topology, node, dst)]
        stages.append(tuple(ports))
        nodes = sorted({topology.peer[port].node for port in ports})
    return stages if nodes else []


def _ports_towards(topology: Topology, node: str, dst: str) -> Iterable[Port]:
    if node in topology.host:
        return topology.ports[node]
    return topology.next_hops[node].get(dst, ())


def _hops_ps(
    topology: Topology, stages: list[Stage], packet_bytes: int, fabric: Fabric
) -> list[int]:
    """For each hop: from a packet's first bit leaving it to its first bit leaving the next.

    For the last one: to its last bit being in memory.
    """
    return [
        min(_hop_ps(topology, port, onward, packet_bytes, fabric) for port in stage)
        for stage, onward in zip(stages, [*stages[1:], ()], strict=False)
    ]


def _hop_ps(
    topology: Topology, port: Port, onward: Stage, packet_bytes: int, fabric: Fabric
) -> int:
    """Cut-through goes on with the header, but never so early that a faster link has to pause."""
    far = topology.peer[port].node
    arrival_ps = whole_ps = _serialisation_ps(topology, (port,), packet_bytes)
    if far in fabric.cut_through:
        header_bytes = min(packet_bytes, fabric.framing.header)
        slowest_bps = min(topology.cable[out].rate_bps for out in onward)
        arrival_ps = max(
            _serialisation_ps(topology, (port,), header_bytes),
            whole_ps - packet_bytes * BYTE_PS_AT_1_BPS // slowest_bps,
        )
    return arrival_ps + topology.cable[port].delay_ps + fabric.latency_ps.get(far, 0)


def _serialisation_ps(topology: Topology, stage: Stage, wire_bytes: int) -> int:
    """On the fastest link of the stage."""
    rate_bps = max(topology.cable[port].rate_bps for port in stage)
    return wire_bytes * BYTE_PS_AT_1_BPS // rate_bps


def _stage_name(topology: Topology, stage: Stage) -> str:
    return " + ".join(topology.port_name[port] for port in stage)
