"""Retransmission timers that cannot fire before the run is over, where switches may drop.

If the last packets of a message are lost, the receiver sees no gap and sends no NAK. Only the
sender's timer detects the loss, 4.096 us * 2^timeout later (IBTA vol 1, 9.7.6.1.3).

A switch may drop at a port whose cable can carry less than arrives for it: from several hosts, of
any traffic entries, or from a faster cable. Packets that arrived on a port with PFC for their
priority wait instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from emu.spec.diagnostic import dotted
from emu.spec.rules.provenance import for_host
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import MessageEntry
from emu.units import PS_PER_NS, ack_timeout_ps, format_time_ns, write_time
from topologies.graph import Port, Topology
from topologies.stages import Stage
from traffic.graph import Flow

_Ends = tuple[str, str]
"""The switch of the sending host, and that of the receiving host."""


def slow_timers(spec: Spec) -> Iterator[str]:
    """A warning for the first flow in which a loss may stay undetected to the end of the run."""
    if spec.fabric_kind.uses_credits or not _is_slow_anywhere(spec) or not _is_lossy_anywhere(spec):
        return
    flows, topology = spec.fabric_flows(), spec.topology.build()
    hops = _hops(topology, flows)
    offered_bps = _senders_rate_bps(topology, flows, hops)
    unreliable = {
        entry.name
        for entry in spec.traffic
        if isinstance(entry, MessageEntry) and entry.transport != "rc"
    }
    for flow in flows:
        if flow.traffic in unreliable or not _is_slow(spec, flow.src):
            continue
        place = _drops_at(spec, flow, hops[_ends(topology, flow)], offered_bps)
        if place is not None:
            yield _sentence(spec, flow, topology.port_name[place])
            return


def _sentence(spec: Spec, flow: Flow, place: str) -> str:
    code = spec.host(flow.src).nic.timeout
    key = dotted(for_host(spec, flow.src, "nic", "timeout"))
    whose = "its" if flow.src == flow.bytes_from else f"{flow.src}'s"
    return (
        f"{flow.traffic}: {place} may drop packets of {flow.bytes_from}, and {whose} "
        f"retransmission timer is {format_time_ns(ack_timeout_ps(code) / PS_PER_NS)} "
        f"({key}: {code}), longer than the run (time_limit: {write_time(spec.time_limit_ps)}): a "
        f"message whose last packet is lost stays unfinished; {_remedy(spec, key)}raise time_limit"
    )


def _remedy(spec: Spec, key: str) -> str:
    """The setting of the longest timer that can fire four times in the run; empty if none can."""
    codes = [code for code in range(1, 32) if 4 * ack_timeout_ps(code) <= spec.time_limit_ps]
    return f"set {key}={codes[-1]}, or " if codes else ""


def _is_slow(spec: Spec, host: str) -> bool:
    return ack_timeout_ps(spec.host(host).nic.timeout) > spec.time_limit_ps


def _is_slow_anywhere(spec: Spec) -> bool:
    return any(_is_slow(spec, host) for host in spec.topology.build().host)


def _is_lossy_anywhere(spec: Spec) -> bool:
    """Whether any switch may drop packets of the priorities that hosts use."""
    topology = spec.topology.build()
    asked = {entry.priority for entry in spec.traffic}
    used = {spec.priority(host, priority) for priority in asked for host in topology.host}
    ports = topology.switch_ports
    return any(not _holds(spec, port, priority) for port in ports for priority in used)


def _holds(spec: Spec, port: Port, priority: int) -> bool:
    """Whether packets that arrive on a switch's port are lossless."""
    pfc = spec.given_port(port).pfc
    return pfc is not None and priority in pfc.priorities


def _ends(topology: Topology, flow: Flow) -> _Ends:
    first, last = (
        topology.peer[topology.ports[host][0]].node for host in (flow.bytes_from, flow.bytes_to)
    )
    return first, last


def _hops(topology: Topology, flows: Iterable[Flow]) -> dict[_Ends, list[Stage]]:
    """The hops between each pair of edge switches, shared by the flows of their hosts."""
    hops: dict[_Ends, list[Stage]] = {}
    for flow in flows:
        ends = _ends(topology, flow)
        if ends not in hops:
            hops[ends] = topology.stages(flow.bytes_from, flow.bytes_to)[1:-1]
    return hops


def _senders_rate_bps(
    topology: Topology, flows: Iterable[Flow], hops: dict[_Ends, list[Stage]]
) -> dict[Port, int]:
    """The highest total rate, in bits per second, that hosts can send to each switch's port."""
    together: dict[_Ends, set[str]] = defaultdict(set)
    senders: dict[Port, set[str]] = defaultdict(set)
    for flow in flows:
        together[_ends(topology, flow)].add(flow.bytes_from)
        senders[topology.peer[topology.ports[flow.bytes_to][0]]].add(flow.bytes_from)
    for ends, hosts in together.items():
        for hop in hops[ends]:
            for port in hop:
                senders[port] |= hosts
    cable = topology.cable
    return {
        port: sum(cable[topology.ports[host][0]].rate_bps for host in hosts)
        for port, hosts in senders.items()
    }


def _drops_at(
    spec: Spec, flow: Flow, between: list[Stage], offered_bps: dict[Port, int]
) -> Port | None:
    """The first port of a switch on a flow's path that may drop its payload."""
    topology, priority = spec.topology.build(), spec.priority(flow.bytes_from, flow.priority)
    first = (topology.ports[flow.bytes_from][0],)
    last = (topology.peer[topology.ports[flow.bytes_to][0]],)
    before: Stage = first
    for hop in (*between, last):
        entered = [topology.peer[port] for port in before]
        lossy = {port.node for port in entered if not _holds(spec, port, priority)}
        for port in hop:
            if port.node in lossy and offered_bps[port] > topology.cable[port].rate_bps:
                return port
        before = hop
    return None
