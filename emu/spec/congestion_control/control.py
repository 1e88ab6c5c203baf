"""What all congestion controls have in common: parameters, and what they ask of a receiver."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo

from emu.spec import references
from emu.spec.base import Model
from emu.spec.congestion_control.registry import register
from emu.spec.notes import note
from emu.spec.quantities import Integer


@dataclass(frozen=True)
class In:
    """Annotates a parameter whose makers count it in another unit than the core."""

    unit: Fraction
    """Of picoseconds, bits per second or 1."""


InitialWindow = Annotated[
    Annotated[Integer, Field(ge=1, le=512)] | None,
    Field(
        description="Initial window: packets in flight before the first ACK. Unless given, the "
        "BDP of the path, up to max_cwnd, so that a flow that is alone fills its path at once, "
        "like controls that start at line rate; TCP starts with 10.",
        json_schema_extra=note(unit="packets", source=references.HPCC),
    ),
]
MaxWindow = Annotated[
    Integer,
    Field(
        ge=1,
        le=512,
        description="The most packets in flight.",
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


@register("none", "nothing slows senders", key=None)
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

    @property
    def asks_for_path(self) -> bool:
        """Whether how it starts depends on how many packets the path holds."""
        return False

    @property
    def start(self) -> str:
        """How fast a flow is at first, for people: after `starts`."""
        return "at line rate"

    def on_path(self, packets: int) -> Self:
        """The same for flows on a path that holds so many packets."""
        return self

    def why_off(self, priority: int) -> str | None:
        """Why this control ignores packets of an Ethernet priority, and what to set; None if it
        does not."""
        return None

    def is_on(self, priority: int) -> bool:
        """Whether this control applies to packets of an Ethernet priority."""
        return self.why_off(priority) is None

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
        """By key: times in picoseconds, rates in bits per second, shares of 1. What depends on
        the path is there once that is known."""
        return {
            field.alias or name: float(getattr(self, name) * _unit(field))
            for name, field in type(self).model_fields.items()
            if name not in self.elsewhere and getattr(self, name) is not None
        }


class WindowControl(Control):
    """One that limits packets in flight, and begins with as many as the path holds."""

    hears_acks = True

    initial_cwnd: InitialWindow = None
    max_cwnd: MaxWindow = 512

    @model_validator(mode="after")
    def _begins_below_the_most(self) -> Self:
        if self.initial_cwnd is not None and self.initial_cwnd > self.max_cwnd:
            raise ValueError(
                f"initial_cwnd {self.initial_cwnd} is above max_cwnd {self.max_cwnd}; lower it, or "
                "raise max_cwnd"
            )
        return self

    @property
    def asks_for_path(self) -> bool:
        return self.initial_cwnd is None

    @property
    def start(self) -> str:
        if self.initial_cwnd is None:
            return "with a window of one BDP, which is what the path holds"
        return f"with a window of {self.initial_cwnd} packets"

    def on_path(self, packets: int) -> Self:
        if self.initial_cwnd is not None:
            return self
        return self.model_copy(update={"initial_cwnd": min(packets, self.max_cwnd)})


def _unit(field: FieldInfo) -> Fraction:
    return next((note.unit for note in field.metadata if isinstance(note, In)), Fraction(1))
