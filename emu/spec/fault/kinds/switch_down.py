"""Switch down: a switch without power, which is a lost link on each of its cables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from emu.spec.fault.kind import LostLinks, register
from topologies.graph import Port, Topology

if TYPE_CHECKING:
    from emu.spec.scenario import Spec


@register
class SwitchDown(LostLinks):
    """A switch without power: all of its links are lost at once."""

    key: ClassVar[str] = "switch-down"
    meaning: ClassVar[str] = "A switch that has lost its power."
    core: ClassVar[str] = "link-down"

    switch: str = Field(description="Name of the switch.")

    @property
    def place(self) -> str:
        return self.switch

    def named(self, topology: Topology) -> tuple[str, str, list[str]]:
        return "switch", "switch", list(topology.switch)

    def ports(self, spec: Spec, topology: Topology) -> Sequence[Port]:
        return topology.ports.get(self.switch, [])
