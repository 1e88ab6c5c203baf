"""The earliest time at which a workload can end: arithmetic, no emulation.

A link of rate C that n messages of S bytes must cross is busy for
n * wire_bytes(S) / C. It cannot start before the first sender's first packet has
arrived, and the last packet must still travel the rest of its path:

    ├─ head ─┼────────── bytes that must cross / C ──────────┼─ tail ─┤
    start    first packet reaches the link      last bit leaves it    in memory

The bound is the latest such end over all links of the fabric. Where a flow may
take any of several equal ports (ECMP), their rates are added, as if its bytes
were spread perfectly, so the bound holds for every choice of paths. A real run
also has acknowledgements, retransmissions and waiting: it is never faster than
the bound, and a good one is a few per cent slower.

All times are in picoseconds; the bound is rounded down to a nanosecond.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from emu.spec.model import Spec
from emu.units import PS_PER_NS, PS_PER_S
from topologies.graph import Port, Topology
from topologies.stages import Stage
from traffic.graph import Flow, OperationGraph
from traffic.verb import Verb


@dataclass(frozen=True)
class PacketOverhead:
    """What a packet occupies on a link besides its payload, in bytes."""

    each: int
    """Of every data packet: headers without padding, and on Ethernet preamble, FCS and gap."""
    reth: int
    """Of the first packet of a WRITE, in addition."""
    header: int
    """The bytes that a cut-through switch receives before it sends a packet on."""

    @property
    def ack(self) -> int:
        """What an acknowledgement occupies: the headers of a packet, and an AETH of 4 bytes."""
        return self.each + 4

    @property
    def request(self) -> int:
        """What the request of a READ occupies: the headers of a packet, and a RETH."""
        return self.each + self.reth


ROCE_V2 = PacketOverhead(each=82, reth=16, header=64)
"""Ethernet 14 + IPv4 20 + UDP 8 + BTH 12 + ICRC 4, and 24 of preamble, FCS and gap."""
ROCE_V2_TAGGED = PacketOverhead(each=86, reth=16, header=64)
"""With a VLAN tag, 4."""
INFINIBAND = PacketOverhead(each=26, reth=16, header=20)
"""LRH 8 + BTH 12 + ICRC 4 + VCRC 2."""
INFINIBAND_GLOBAL = PacketOverhead(each=66, reth=16, header=20)
"""With a GRH, 40."""


@dataclass(frozen=True)
class Fabric:
    """The configuration that the bound depends on: MTUs by host, the rest by switch."""

    overhead: PacketOverhead
    mtu_bytes: Mapping[str, int]
    latency_ps: Mapping[str, int]
    cut_through: frozenset[str]


@dataclass(frozen=True)
class Bound:
    """No run ends before `last_finish_ns`, because `link` cannot carry its bytes faster."""

    last_finish_ns: int
    link: str
    """Name of its sending port; several equal ones are joined by ` + `."""


@dataclass(frozen=True)
class Batch:
    """Equal messages of one pair of hosts. A collective has millions, few of which differ."""

    src: str
    dst: str
    verb: Verb
    size_bytes: int
    not_before_ns: int = 0
    count: int = 1
    then_ns: int = 0
    """The time that what follows the last message takes at least."""


class Packets(NamedTuple):
    """What the packets of a message occupy on a link, in bytes."""

    first: int
    last: int
    total: int


class Alone(NamedTuple):
    """A message on a path without other traffic."""

    wire_bytes: int
    transfer_ps: int
    """How long its slowest link is busy with it."""
    took_ps: int
    """From its first bit leaving until its last bit is in memory."""


class _Crossing(NamedTuple):
    """A batch as one link sees it."""

    head_ps: int
    """The earliest time of its first bit on the link."""
    wire_bytes: int
    tail_ps: int
    """From its last bit leaving the link to the receiver's memory."""


class _Hop(NamedTuple):
    """A sending port's cable, and the switch at its far end."""

    rate_bps: int
    delay_ps: int
    latency_ps: int
    onward_bps: int | None
    """The slowest link that the switch may send on, if it cuts through."""


@dataclass(frozen=True)
class _Segment:
    """A stage as a packet sees it: the same for many pairs of hosts."""

    hops: frozenset[_Hop]
    rate_bps: int
    """Of all its ports together."""

    fastest_bps: int
    """Of the fastest of them."""


@dataclass(frozen=True, eq=False)
class _Path:
    """A path as packets see it: the same object for all pairs of hosts with the same segments.
    Without segments there is no path."""

    segments: tuple[_Segment, ...]


def fabric_of(spec: Spec, topology: Topology) -> Fabric:
    """The part of a spec that the bound depends on."""
    switches = {switch.name: spec.switch(switch.name) for switch in topology.switches}
    return Fabric(
        overhead=overhead_of(spec, topology),
        mtu_bytes={host.name: spec.host(host.name).nic.mtu for host in topology.hosts},
        latency_ps={name: switch.latency_ps for name, switch in switches.items()},
        cut_through=frozenset(filter(spec.cuts_through, switches)),
    )


def overhead_of(spec: Spec, topology: Topology) -> PacketOverhead:
    """The smallest of any host's packets."""
    nics = [spec.host(host.name).nic for host in topology.hosts]
    if spec.fabric_kind.is_ethernet:
        return ROCE_V2_TAGGED if all(nic.tag_bytes for nic in nics) else ROCE_V2
    is_global = all(nic.global_route for nic in nics)
    return INFINIBAND_GLOBAL if is_global else INFINIBAND


def batches_of(graph: OperationGraph, flows: Iterable[Flow]) -> Iterator[Batch]:
    """The messages of some flows of a workload, equal ones of a flow together."""
    for flow in flows:
        own = slice(flow.operations.start, flow.operations.stop)
        columns = graph.size_bytes[own].tolist(), graph.not_before_ns[own].tolist()
        for kind, count in sorted(Counter(zip(*columns, strict=True)).items()):
            yield Batch(flow.bytes_from, flow.bytes_to, flow.verb, *kind, count)


def last_finish_bound(topology: Topology, batches: Iterable[Batch], fabric: Fabric) -> Bound | None:
    """The bound and the link that sets it; None when nothing crosses the fabric."""
    return Paths(topology, fabric).last_finish_bound(batches)


class Paths:
    """The paths through a fabric. Hosts of the same two switches share them, so each is computed
    once."""

    def __init__(self, topology: Topology, fabric: Fabric) -> None:
        self._topology = topology
        self._fabric = fabric
        self._paths: dict[tuple[_Segment, ...], _Path] = {}
        self._by_stages: dict[tuple[int, ...], _Path] = {}
        self._segments: dict[tuple[int, int], _Segment] = {}
        self._kinds: dict[_Segment, _Segment] = {}
        self._single: dict[Stage, _Path] = {}

    def last_finish_bound(self, batches: Iterable[Batch]) -> Bound | None:
        """As above."""
        crossings: dict[int, list[_Crossing]] = defaultdict(list)
        stages: dict[int, Stage] = {}  # by identity: a stage has hundreds of ports
        for batch in batches:
            start_ps, hops = batch.not_before_ns * PS_PER_NS, self.stages(batch.src, batch.dst)
            alone = self._crossings(self._path(hops), batch)
            for stage, one in zip(hops, alone, strict=True):
                bytes_ = one.wire_bytes * batch.count
                tail_ps = one.tail_ps + batch.then_ns * PS_PER_NS
                crossing = _Crossing(start_ps + one.head_ps, bytes_, tail_ps)
                crossings[id(stage)].append(crossing)
                stages[id(stage)] = stage
        if not crossings:
            return None
        finish_ps = {
            which: _finish_ps(own, self._rate_bps(stages[which]))
            for which, own in crossings.items()
        }
        slowest = max(finish_ps, key=finish_ps.__getitem__)
        return Bound(finish_ps[slowest] // PS_PER_NS, _stage_name(self._topology, stages[slowest]))

    def alone_ns(self, batch: Batch) -> int:
        """When a batch of one message ends that starts at 0, if there is no other traffic."""
        path = self._path(self.stages(batch.src, batch.dst))
        crossings = self._crossings(path, batch)
        ends_ps = (
            _finish_ps([one], segment.rate_bps)
            for segment, one in zip(path.segments, crossings, strict=True)
        )
        return max(ends_ps, default=0) // PS_PER_NS

    def alone_along(self, ports: tuple[Port, ...], size_bytes: int, mtu: int, verb: Verb) -> Alone:
        """A message by itself on the path of these sending ports."""
        path, overhead = self._along(ports), self._fabric.overhead
        packets = packets_of(size_bytes, mtu, verb, overhead)
        slowest_bps = min(segment.rate_bps for segment in path.segments)
        crossings = _crossings(path, packets, overhead.header)
        took_ps = max(
            _finish_ps([one], segment.rate_bps)
            for segment, one in zip(path.segments, crossings, strict=True)
        )
        return Alone(packets.total, _serialisation_ps(packets.total, slowest_bps), took_ps)

    def packet_ps(self, ports: tuple[Port, ...], wire_bytes: int) -> int:
        """From the first bit of a packet leaving until its last bit has arrived, on the path of
        these sending ports."""
        return sum(_hops_ps(self._along(ports), wire_bytes, self._fabric.overhead.header))

    def _along(self, ports: tuple[Port, ...]) -> _Path:
        if ports not in self._single:
            hops = [(port,) for port in ports]
            segments = tuple(map(self._made_segment, hops, [*hops[1:], ()]))
            self._single[ports] = self._paths.setdefault(segments, _Path(segments))
        return self._single[ports]

    def _crossings(self, path: _Path, batch: Batch) -> tuple[_Crossing, ...]:
        """One message as each link of its path sees it, timed from its start."""
        overhead, mtu_bytes = self._fabric.overhead, self._fabric.mtu_bytes[batch.src]
        packets = packets_of(batch.size_bytes, mtu_bytes, batch.verb, overhead)
        return _crossings(path, packets, overhead.header)

    def stages(self, src: str, dst: str) -> list[Stage]:
        """The hops from one host to another; none when there is no path."""
        return self._topology.stages(src, dst)

    def _path(self, hops: Sequence[Stage]) -> _Path:
        onward = [*hops[1:], ()]
        segments = tuple(map(self._segment, hops, onward))
        which = tuple(map(id, segments))
        if which not in self._by_stages:
            self._by_stages[which] = self._paths.setdefault(segments, _Path(segments))
        return self._by_stages[which]

    def _rate_bps(self, stage: Stage) -> int:
        """Of all its ports together."""
        return sum(self._topology.cable[port].rate_bps for port in stage)

    def _segment(self, stage: Stage, onward: Stage) -> _Segment:
        """Equal ones are the same object."""
        which = id(stage), id(onward)  # stages live as long as the topology
        if which not in self._segments:
            made = self._made_segment(stage, onward)
            self._segments[which] = self._kinds.setdefault(made, made)
        return self._segments[which]

    def _made_segment(self, stage: Stage, onward: Stage) -> _Segment:
        cables = [self._topology.cable[port] for port in stage]
        slowest_bps = min((self._topology.cable[port].rate_bps for port in onward), default=0)
        hops = (
            _Hop(
                rate_bps=cable.rate_bps,
                delay_ps=cable.delay_ps,
                latency_ps=self._fabric.latency_ps.get(far, 0),
                onward_bps=slowest_bps if far in self._fabric.cut_through else None,
            )
            for port, cable in zip(stage, cables, strict=True)
            for far in [self._topology.peer[port].node]
        )
        fastest_bps = max(cable.rate_bps for cable in cables)
        return _Segment(frozenset(hops), self._rate_bps(stage), fastest_bps)


def packets_of(size_bytes: int, mtu_bytes: int, verb: Verb, overhead: PacketOverhead) -> Packets:
    """The packets of one message; all but the last carry a full MTU."""
    full = max(1, -(-size_bytes // mtu_bytes)) - 1
    address = overhead.reth if verb in (Verb.WRITE, Verb.WRITE_IMM) else 0
    whole = _padded(mtu_bytes) + overhead.each
    last = _padded(size_bytes - full * mtu_bytes) + overhead.each
    if not full:
        return Packets(last + address, last + address, last + address)
    return Packets(whole + address, last, full * whole + last + address)


def _padded(payload_bytes: int) -> int:
    """Payloads are padded to whole 4-byte words (IBTA vol 1, 9.2)."""
    return -(-payload_bytes // 4) * 4


def _finish_ps(crossings: list[_Crossing], rate_bps: int) -> int:
    """When a link of this rate can have passed all of them on to their receivers.

    Also true for every subset; those that matter are the messages from some
    moment on, because a link may idle before a late start.
    """
    finish_ps, wire_bytes, tail_ps = 0, 0, crossings[0].tail_ps
    for crossing in sorted(crossings, key=lambda crossing: -crossing.head_ps):
        wire_bytes += crossing.wire_bytes
        tail_ps = min(tail_ps, crossing.tail_ps)
        busy_ps = 8 * wire_bytes * PS_PER_S // rate_bps
        finish_ps = max(finish_ps, crossing.head_ps + busy_ps + tail_ps)
    return finish_ps


@lru_cache(maxsize=1 << 16)
def _crossings(path: _Path, packets: Packets, header_bytes: int) -> tuple[_Crossing, ...]:
    """All stages that a message must cross, and the earliest time for each."""
    first_hops = _hops_ps(path, packets.first, header_bytes)
    last_hops = _hops_ps(path, packets.last, header_bytes)
    return tuple(
        _Crossing(
            head_ps=sum(first_hops[:place]),
            wire_bytes=packets.total,
            tail_ps=sum(last_hops[place:]) - _serialisation_ps(packets.last, segment.fastest_bps),
        )
        for place, segment in enumerate(path.segments)
    )


@lru_cache(maxsize=1 << 16)
def _hops_ps(path: _Path, packet_bytes: int, header_bytes: int) -> list[int]:
    """For each hop: from a packet's first bit leaving it to its first bit leaving the next.

    For the last one: to its last bit being in memory.
    """
    return [
        min(_hop_ps(hop, packet_bytes, header_bytes) for hop in segment.hops)
        for segment in path.segments
    ]


def _hop_ps(hop: _Hop, packet_bytes: int, header_bytes: int) -> int:
    """Cut-through goes on with the header, but never so early that a faster link has to pause."""
    arrival_ps = whole_ps = _serialisation_ps(packet_bytes, hop.rate_bps)
    if hop.onward_bps is not None:
        arrival_ps = max(
            _serialisation_ps(min(packet_bytes, header_bytes), hop.rate_bps),
            whole_ps - _serialisation_ps(packet_bytes, hop.onward_bps),
        )
    return arrival_ps + hop.delay_ps + hop.latency_ps


def _serialisation_ps(wire_bytes: int, rate_bps: int) -> int:
    return 8 * wire_bytes * PS_PER_S // rate_bps


def _stage_name(topology: Topology, stage: Stage) -> str:
    return " + ".join(topology.port_name[port] for port in stage)
