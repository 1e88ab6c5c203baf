"""What must hold between the fabric and who forwards and marks in it."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.finding import Finding
from emu.spec.rules.given import for_switch
from emu.spec.scenario import Spec


def infiniband_is_not_forwarded_by_ovs(spec: Spec) -> Iterator[Finding]:
    if spec.fabric == "ib" and spec.plane == "ovs":
        yield Finding(
            ("plane",),
            "Open vSwitch cannot forward InfiniBand packets; use plane: auto, or fabric: roce",
            about=(("fabric",),),
        )


def ebpf_has_ports_to_mark_on(spec: Spec) -> Iterator[Finding]:
    if spec.fabric == "ib":
        why, remedy = "InfiniBand does without", "fabric: roce"
    elif spec.plane == "shim":
        why, remedy = "plane: shim does without", "plane: ovs"
    else:
        return
    for name in spec.topology.build().switch:
        ecn = spec.switch(name).ecn
        if ecn is not None and ecn.marker == "ebpf":
            yield Finding(
                for_switch(spec, name, "ecn", "marker"),
                f"eBPF marks on Open vSwitch's ports, which {why}; use marker: auto, or {remedy}",
                about=(("plane",), ("fabric",)),
                idle_if_inherited=spec.fabric == "ib",
            )


def ebpf_marks_what_joins_a_queue(spec: Spec) -> Iterator[Finding]:
    for name in spec.topology.build().switch:
        ecn = spec.switch(name).ecn
        if ecn is not None and ecn.marker == "ebpf" and ecn.at == "dequeue":
            yield Finding(
                for_switch(spec, name, "ecn", "at"),
                "eBPF marks packets before they join a queue, and cannot know what they will leave "
                "behind; use marker: shim, or at: enqueue",
                about=(for_switch(spec, name, "ecn", "marker"),),
            )


RULES = (
    infiniband_is_not_forwarded_by_ovs,
    ebpf_has_ports_to_mark_on,
    ebpf_marks_what_joins_a_queue,
)
