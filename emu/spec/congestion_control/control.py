"""The base of all congestion controls: their parameters, and the feedback of a receiver."""

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
    """Annotates a parameter whose unit differs from the core's."""

    unit: Fraction
    """The unit in picoseconds, bits per second or shares of 1."""


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
    """How a receiver notifies the sender of marked packets."""

    by: Literal["none", "cnp", "ack"]
    interval_ps: int = 0
    """The least time between two CNPs."""
    keeps_marks: bool = False
    """Whether marks during the interval cause a CNP at its end."""


@register("none", "senders are not slowed down", key=None)
class Control(Model):
    """A congestion control. This one, which has no parameters, does nothing."""

    needs_every_ack: ClassVar[bool] = False
    """Whether it acts on ACKs and therefore requires an ACK for each packet."""
    slowest: ClassVar[str | None] = None
    """The key of the lowest rate to which a flow is slowed."""
    elsewhere: ClassVar[frozenset[str]] = frozenset()
    """The fields that are not parameters of the sender."""

    @property
    def becn(self) -> Becn:
        return Becn("none")

    @property
    def depends_on_path(self) -> bool:
        """Whether its initial window depends on the BDP of the path."""
        return False

    @property
    def start(self) -> str:
        """The initial rate or window of a flow, as the end of a sentence after `starts`."""
        return "at line rate"

    def on_path(self, packets: int) -> Self:
        """This control for flows on a path whose BDP is this number of packets."""
        return self

    def why_off(self, priority: int) -> str | None:
        """Why this control ignores packets of an Ethernet priority, and what to set; None if it
        does not."""
        return None

    def is_on(self, priority: int) -> bool:
        """Whether this control applies to packets of an Ethernet priority."""
        return self.why_off(priority) is None

    def dscp_of_cnps(self, usual: int, data: int) -> int:
        """The DSCP of the CNPs that answer packets of the DSCP `data`. `usual` is the NIC's."""
        return usual

    @property
    def pcp_of_cnps(self) -> int | None:
        """The priority of CNPs and the PCP of their VLAN tag; None: the priority of their DSCP."""
        return None

    @property
    def table(self) -> tuple[int, ...]:
        """The 16-bit entries of the control's table, if it has one."""
        return ()

    def parameters(self) -> dict[str, float]:
        """The parameters by key: times in picoseconds, rates in bits per second, shares of 1.
        Parameters that depend on the path are included after `on_path`."""
        return {
            field.alias or name: float(getattr(self, name) * _unit(field))
            for name, field in type(self).model_fields.items()
            if name not in self.elsewhere and getattr(self, name) is not None
        }


class WindowControl(Control):
    """A congestion control that limits packets in flight. Its default initial window is the BDP."""

    needs_every_ack = True

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
    def depends_on_path(self) -> bool:
        return self.initial_cwnd is None

    @property
    def start(self) -> str:
        if self.initial_cwnd is None:
            return "with a window of one BDP of the path"
        return f"with a window of {self.initial_cwnd} packets"

    def on_path(self, packets: int) -> Self:
        if self.initial_cwnd is not None:
            return self
        return self.model_copy(update={"initial_cwnd": min(packets, self.max_cwnd)})


def _unit(field: FieldInfo) -> Fraction:
    return next((note.unit for note in field.metadata if isinstance(note, In)), Fraction(1))
