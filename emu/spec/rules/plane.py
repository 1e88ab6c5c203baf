"""Rules for the software that forwards and marks packets."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.diagnostic import Diagnostic
from emu.spec.rules.provenance import for_port
from emu.spec.scenario import Spec
from emu.spec.switch import Ecn, SwitchSpec
from topologies.graph import Port


def the_plane_can_forward_the_fabric(spec: Spec) -> Iterator[Diagnostic]:
    if spec.plane not in ("auto", *spec.fabric_kind.planes):
        yield Diagnostic(
            ("plane",),
            f"Open vSwitch cannot forward {spec.fabric_kind.title} packets; use plane: auto, or "
            "fabric: roce",
            about=(("fabric",),),
        )


_WHO = {"ebpf": "eBPF", "red": "the kernel's RED"}


def the_kernel_has_ports_to_mark_on(spec: Spec) -> Iterator[Diagnostic]:
    if "ovs" not in spec.fabric_kind.planes:
        why, remedy = f"{spec.fabric_kind.title} does not use", "fabric: roce"
    elif spec.plane == "shim":
        why, remedy = "plane: shim does not use", "plane: ovs"
    else:
        return
    for port, ecn in _marking_ports(spec):
        if ecn.marker in _WHO:
            yield Diagnostic(
                for_port(spec, port, "ecn", "marker"),
                f"{_WHO[ecn.marker]} marks on Open vSwitch's ports, which {why}; use marker: auto, "
                f"or {remedy}",
                about=(("plane",), ("fabric",)),
                idle_if_inherited="ovs" not in spec.fabric_kind.planes,
            )


def the_kernel_marks_what_joins_a_queue(spec: Spec) -> Iterator[Diagnostic]:
    for port, ecn in _marking_ports(spec):
        if ecn.marker in _WHO and ecn.at == "dequeue":
            yield Diagnostic(
                for_port(spec, port, "ecn", "at"),
                f"{_WHO[ecn.marker]} marks packets before they join a queue, and cannot know the "
                "depth when they leave; use marker: shim, or at: enqueue",
                about=(for_port(spec, port, "ecn", "marker"),),
            )


def red_has_one_queue_for_each_port(spec: Spec) -> Iterator[Diagnostic]:
    for port, ecn in _marking_ports(spec):
        if ecn.marker == "red" and ecn.queues:
            yield Diagnostic(
                for_port(spec, port, "ecn", "queues"),
                "the kernel's RED is one queue for all priorities of a port, with one curve; use "
                "marker: auto, or take the curves of single queues out",
                about=(for_port(spec, port, "ecn", "marker"),),
            )


def red_marks_everywhere_or_nowhere(spec: Spec) -> Iterator[Diagnostic]:
    marking = list(_marking_ports(spec))
    others = [port for port, ecn in marking if ecn.marker != "red"]
    if others and len(others) < len(marking):
        yield Diagnostic(
            for_port(spec, others[0], "ecn", "marker"),
            "other ports have marker: red, which puts their queues into the kernel; set it for all "
            "ports, or for none",
            about=(("switches",),),
        )


def _marking_ports(spec: Spec) -> Iterator[tuple[Port, Ecn]]:
    """The switch ports with ECN. Of a switch's ports with the same settings, only the first."""
    topology = spec.topology.build()
    for switch in topology.switch:
        distinct: dict[int, tuple[Port, SwitchSpec]] = {}
        for port in topology.ports[switch]:
            own = spec.given_port(port)
            distinct.setdefault(id(own), (port, own))
        yield from ((port, own.ecn) for port, own in distinct.values() if own.ecn is not None)


RULES = (
    the_plane_can_forward_the_fabric,
    the_kernel_has_ports_to_mark_on,
    the_kernel_marks_what_joins_a_queue,
    red_has_one_queue_for_each_port,
    red_marks_everywhere_or_nowhere,
)
