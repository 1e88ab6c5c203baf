"""What is allowed, and most likely not meant. A run goes on, and says it."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.derived import pauses_come_first
from emu.spec.rules.idle_controls import idle_controls
from emu.spec.scenario import Spec
from emu.units import write_size
from topologies.graph import Port


def warnings_of(spec: Spec) -> tuple[str, ...]:
    """A sentence each, for a spec that contradicts itself nowhere."""
    of_roce = (*_lossy_rdma(spec), *_late_marks(spec)) if spec.fabric == "roce" else ()
    return tuple(dict.fromkeys((*of_roce, *idle_controls(spec))))


def _lossy_rdma(spec: Spec) -> Iterator[str]:
    """Flows whose packets a lossless fabric drops, because they ride on another priority."""
    for entry in spec.traffic:
        if spec.by_tcp(entry):
            continue
        for host in entry.senders:
            lossless = spec.port(_leaf_port(spec, host)).pfc
            priority = spec.priority(host, entry.priority)
            if lossless is not None and priority not in lossless.priorities:
                yield (
                    f"{entry.name}: {host} sends RDMA with DSCP {spec.dscp(host, entry.priority)}, "
                    f"on priority {priority}, which its switch may drop: PFC is for "
                    f"{_listed(lossless.priorities)}; set hosts.nic.dscp, or change "
                    "switches.classes or switches.pfc.priorities"
                )
                break


def _late_marks(spec: Spec) -> Iterator[str]:
    topology = spec.topology.build()
    for switch in topology.switch:
        for port in topology.ports[switch]:
            ecn = spec.port(port).ecn
            if ecn is not None and pauses_come_first(spec, port, ecn):
                limit = spec.port_scale(port).limit
                held, kmin = write_size(limit.size_bytes), write_size(ecn.kmin_bytes)
                yield (
                    f"{topology.port_name[port]} pauses its sender at {held} ({limit.reason}), "
                    f"before it marks: kmin is {kmin}; lower switches.ecn.kmin, or raise "
                    "switches.pfc.xoff"
                )
                return


def _leaf_port(spec: Spec, host: str) -> Port:
    topology = spec.topology.build()
    return topology.peer[topology.ports[host][0]]


def _listed(priorities: tuple[int, ...]) -> str:
    names = " and ".join(map(str, sorted(set(priorities))))
    return f"priority {names}" if len(set(priorities)) == 1 else f"priorities {names}"
