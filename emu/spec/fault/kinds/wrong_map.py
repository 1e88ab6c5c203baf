"""Wrong map: ports of a switch map DSCPs or PCPs to other priorities than their neighbours do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from emu.fabric_kind import Framing
from emu.spec.classes import DSCPS, PRIORITIES, Classes, DscpKey
from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault.kind import OnPorts, exactly_one, register
from emu.spec.parameters import Parameters
from emu.spec.quantities import Priority, PriorityKey
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec


@register
class WrongMap(OnPorts):
    """Packets that the ports receive are put on other priorities, and counted there."""

    key: ClassVar[str] = "wrong-map"
    meaning: ClassVar[str] = "A switch that maps DSCPs or PCPs to the wrong priorities. RoCE only."
    unavailable: ClassVar = {
        Framing.INFINIBAND: "InfiniBand's packets have no DSCP or PCP; leave it out, or "
        "use fabric: roce"
    }
    already: ClassVar[str] = "has a wrong map already"

    dscp: dict[DscpKey, Priority] | None = Field(
        default=None,
        min_length=1,
        description="Priority by DSCP, e.g. {26: 0}; other DSCPs keep theirs.",
    )
    pcp: dict[PriorityKey, Priority] | None = Field(
        default=None, min_length=1, description="Priority by PCP, for ports that trust it."
    )

    @property
    def _field(self) -> str:
        return "dscp" if self.dscp is not None else "pcp"

    @property
    def _moved(self) -> dict[int, int]:
        """The new priority of each code point."""
        return self.dscp or self.pcp or {}

    def is_at(self, spec: Spec, port: Port) -> bool:
        return spec.port(port).classes.trust == self._field

    @property
    def missing(self) -> str:
        other = "pcp" if self._field == "dscp" else "dscp"
        return f"does not trust {self._field.upper()}, so it does not use this map; use {other}"

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        right = spec.port(port).classes
        wrong = right.model_copy(
            update={self._field: {**getattr(right, self._field), **self._moved}}
        )
        return {
            "of_dscp": [wrong.priority_of_dscp(dscp) for dscp in range(DSCPS)],
            "of_pcp": [wrong.priority_of_pcp(pcp) for pcp in range(PRIORITIES)],
        }

    def wrong_settings(
        self, at: KeyPath, spec: Spec, ports: Sequence[Port]
    ) -> Iterator[Diagnostic]:
        field = self._field
        for code_point, priority in self._moved.items():
            if all(self._right(spec.port(port).classes, code_point) == priority for port in ports):
                yield Diagnostic(
                    (*at, field, str(code_point)),
                    f"{self.place} has {field.upper()} {code_point} on priority {priority} anyhow; "
                    "name another priority, or leave it out",
                    about=(("switches",), ("topology",)),
                    idle_if_inherited=True,
                )

    def _right(self, classes: Classes, code_point: int) -> int:
        """The priority of a code point without the fault."""
        of = classes.priority_of_dscp if self._field == "dscp" else classes.priority_of_pcp
        return of(code_point)

    @model_validator(mode="after")
    def _one_map(self) -> Self:
        exactly_one(dscp=self.dscp, pcp=self.pcp)
        return self
