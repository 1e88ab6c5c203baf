"""What a fabric asks of the machine that emulates it, in emulated time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from emu.measure.merge import mtu_time_ns
from emu.spec.scenario import Spec
from topologies.graph import Topology


@dataclass(frozen=True)
class Demand:
    """A fabric's demand. Divided by the slowdown, the first is a rate in wall-clock time."""

    packet_hops_per_second: float
    """Packets through switches while every sender has its line full."""
    budget_ns: int
    """By how much a frame may be late: one MTU on the fastest link."""


def demand_of(spec: Spec, topology: Topology) -> Demand:
    """Each sender's line rate in packets, times the switches on the way of its flows."""
    switches: dict[str, list[int]] = defaultdict(list)
    for flow in (*spec.fabric_flows(), *spec.streams().flows):
        switches[flow.src].append(_switches_between(topology, flow.src, flow.dst))
    hops = sum(
        _packets_per_second(spec, topology, src) * sum(counts) / len(counts)
        for src, counts in switches.items()
    )
    return Demand(hops, mtu_time_ns(spec, topology))


def _packets_per_second(spec: Spec, topology: Topology, host: str) -> float:
    port = topology.ports[host][0]
    return topology.cable[port].rate_bps / (8 * spec.host(host).nic.largest_frame_bytes)


def _switches_between(topology: Topology, src: str, dst: str) -> int:
    leaf = topology.peer[topology.ports[src][0]].node
    count = 1
    while topology.peer[topology.hops(leaf, dst)[0]].node != dst:
        leaf = topology.peer[topology.hops(leaf, dst)[0]].node
        count += 1
    return count
