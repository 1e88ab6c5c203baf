"""The load that a fabric puts on the machine that emulates it, in emulated time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from emu.measure.merge import mtu_time_ns
from emu.spec.scenario import Spec
from topologies.graph import Topology


@dataclass(frozen=True)
class Demand:
    """A fabric's demand on its machine."""

    packet_hops_per_second: float
    """Packets through switches while every sender sends at line rate. Divided by the slowdown,
    it is a rate in wall-clock time."""
    budget_ns: int
    """How late a frame may be: one MTU's serialisation on the fastest link."""


def demand_of(spec: Spec) -> Demand:
    """Each sender's line rate in packets, times the mean number of switches on its flows' paths."""
    topology = spec.topology.build()
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
    return len(topology.stages(src, dst)) - 1
