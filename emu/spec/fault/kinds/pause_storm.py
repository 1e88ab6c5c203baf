"""Pause storm: a NIC that pauses its switch without end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from emu.fabric_kind import FlowControl
from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault.kind import OnHost, register
from emu.spec.notes import note
from emu.spec.parameters import Parameters
from emu.spec.quantities import Priority
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.fault import Fault
    from emu.spec.scenario import Spec


@register
class PauseStorm(OnHost):
    """The host's NIC pauses its switch without end."""

    key: ClassVar[str] = "pause-storm"
    meaning: ClassVar[str] = "A NIC that pauses its switch without end."
    unavailable: ClassVar = {
        FlowControl.CREDITS: "InfiniBand has no pause frames; use slow-receiver, which "
        "withholds credit, or fabric: roce"
    }

    priority: Priority = Field(
        default=3,
        description="The priority it pauses, 0 to 7.",
        json_schema_extra=note(unit="priority", why="the lossless priority by default"),
    )

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        return {"priority": self.priority}

    def contradictions(self, fault: Fault, at: KeyPath, spec: Spec) -> Iterator[Diagnostic]:
        """A switch obeys pause frames only of the priorities that have PFC."""
        topology = spec.topology.build()
        for port in self.ports(spec, topology)[:1]:
            at_switch = topology.peer[port]
            pfc = spec.port(at_switch).pfc
            if pfc is None or self.priority not in pfc.priorities:
                yield Diagnostic(
                    (*at, self.key, "priority"),
                    f"{topology.port_name[at_switch]} does not obey pause frames of priority "
                    f"{self.priority}; name it in switches.pfc.priorities",
                    about=(("switches",), ("topology",)),
                    idle_if_inherited=True,
                )
