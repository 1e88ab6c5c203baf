"""Warnings about settings that are allowed but probably not intended. A run prints them."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.derived import late_curves
from emu.spec.diagnostic import dotted
from emu.spec.routing import PACKET_KINDS
from emu.spec.rules.idle_controls import idle_controls
from emu.spec.rules.slow_timers import slow_timers
from emu.spec.rules.small_steps import small_steps
from emu.spec.rules.unheeded_marks import unheeded_marks
from emu.spec.scenario import Spec
from emu.units import write_size
from topologies.graph import Port


def warnings_of(spec: Spec) -> tuple[str, ...]:
    """The warnings about a spec without contradictions, a sentence each."""
    of_roce = (*_lossy_rdma(spec), *_late_marks(spec)) if not spec.fabric_kind.uses_credits else ()
    of_controls = (*idle_controls(spec), *unheeded_marks(spec), *small_steps(spec))
    return tuple(dict.fromkeys((*of_roce, *of_controls, *slow_timers(spec), *_reordered(spec))))


def _lossy_rdma(spec: Spec) -> Iterator[str]:
    """Warns of flows on a lossy priority in a fabric with PFC for other priorities."""
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
            for section, curve in late_curves(spec, port).items():
                limit = spec.port_scale(port).limit
                held, kmin = write_size(limit.size_bytes), write_size(curve.kmin_bytes)
                key = dotted(("switches", *section, "kmin"))
                yield (
                    f"{topology.port_name[port]} pauses its sender at {held} ({limit.reason}), "
                    f"before it marks: kmin is {kmin}; lower {key}, or raise switches.pfc.xoff"
                )
                return


def _reordered(spec: Spec) -> Iterator[str]:
    """Warns of a sender that takes reordering for loss, on paths that reorder packets."""
    topology = spec.topology.build()
    kinds = {name: spec.switch(name).routing.kind for name in topology.switch}
    if not any(kind in PACKET_KINDS for kind in kinds.values()):
        return
    for flow in spec.fabric_flows():
        recovery = spec.host(flow.bytes_from).nic.recovery_scheme
        if recovery.keeps_early_packets:
            continue
        for hop in topology.stages(flow.bytes_from, flow.bytes_to):
            chooses = [port.node for port in hop if kinds.get(port.node) in PACKET_KINDS]
            if several := next((name for name in chooses if chooses.count(name) > 1), None):
                yield (
                    f"{flow.traffic}: {several} sends the packets of a flow over several paths "
                    f"({kinds[several]} routing), so that they arrive out of order, and "
                    f"{flow.bytes_from} takes that for loss (recovery: {recovery.name}); set "
                    "hosts.nic.recovery to selective-repeat, with hosts.nic.reordering, or change "
                    "switches.routing.kind"
                )
                return


def _leaf_port(spec: Spec, host: str) -> Port:
    topology = spec.topology.build()
    return topology.peer[topology.ports[host][0]]


def _listed(priorities: tuple[int, ...]) -> str:
    names = " and ".join(map(str, sorted(set(priorities))))
    return f"priority {names}" if len(set(priorities)) == 1 else f"priorities {names}"
