"""What all congestion controls have in common: parameters, and what they ask of a receiver."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.fields import FieldInfo

from emu.spec import references
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import Integer


@dataclass(frozen=True)
class In:
    """Annotates a parameter whose makers count it in another unit than the core."""

    unit: Fraction
    """Of picoseconds, bits per second or 1."""


InitialWindow = Annotated[
    Integer,
    Field(
        ge=1,
        le=512,
        description="Packets in flight at first, before any ACK.",
        json_schema_extra=note(unit="packets", why="TCP's", source=references.RFC6928),
    ),
]
MaxWindow = Annotated[
    Integer,
    Field(
        ge=1,
        le=512,
        description="Packets that may be in flight at most.",
        json_schema_extra=note(
            unit="packets", why="2 MB in packets of 4096 bytes, several times any path's BDP here"
        ),
    ),
]


@dataclass(frozen=True)
class Becn:
    """How a receiver tells the sender of packets that met congestion."""

    by: Literal["none", "cnp", "ack"]
    interval_ps: int = 0
    """No second CNP in this time."""
    keeps_marks: bool = False
    """Whether marks in the interval make a CNP at its end."""


class Control(Model):
    """A congestion control. This one, which has no parameters, does nothing."""

    hears_acks: ClassVar[bool] = False
    """Whether it lives on ACKs, so that each packet wants one."""
    slowest: ClassVar[str | None] = None
    """The key of the rate below which no flow is slowed."""
    elsewhere: ClassVar[frozenset[str]] = frozenset()
    """Fields that are no parameters of the sender's."""

    @property
    def becn(self) -> Becn:
        return Becn("none")

    def is_on(self, priority: int) -> bool:
        """Whether packets of an Ethernet priority are under its control."""
        return True

    def dscp_of_cnps(self, usual: int, data: int) -> int:
        """That of the CNPs which answer packets of the DSCP `data`; `usual` is the NIC's."""
        return usual

    @property
    def pcp_of_cnps(self) -> int | None:
        """The priority that CNPs ride on, and tell in their VLAN tag; None: that of their DSCP."""
        return None

    @property
    def table(self) -> tuple[int, ...]:
        """Of a control that has one, its entries as NICs have them, 16 bits each."""
        return ()

    def parameters(self) -> dict[str, float]:
        """By key: times in picoseconds, rates in bits per second, shares of 1."""
        return {
            field.alias or name: float(getattr(self, name) * _unit(field))
            for name, field in type(self).model_fields.items()
            if name not in self.elsewhere
        }


def refuse_windows(control: Control, initial: int, most: int) -> None:
    """Raises ValueError when it says that a window, in packets, begins above the most it may be."""
    if "initial_cwnd" in control.model_fields_set and initial > most:
        raise ValueError(
            f"initial_cwnd {initial} is above max_cwnd {most}; lower it, or raise max_cwnd"
        )


def _unit(field: FieldInfo) -> Fraction:
    return next((note.unit for note in field.metadata if isinstance(note, In)), Fraction(1))
