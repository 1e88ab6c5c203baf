"""`cc: cct`: InfiniBand's congestion control table (IBTA vol 1, A10); cc_cct.c has the rules."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from emu.spec import references
from emu.spec.congestion_control.control import Becn, Control, In
from emu.spec.congestion_control.registry import register
from emu.spec.notes import note
from emu.spec.quantities import Integer

CctiTimer = Annotated[Integer, In(Fraction(1_024_000))]
"""1.024 us."""


def _encodable(delay: float) -> float:
    if encoded_delay(delay) is None:
        raise ValueError(
            f"{delay} cannot be an entry of the table: it holds multiples of 1/8 up to 2047, of "
            "1/4 up to 4095, of 1/2 up to 8191 and whole numbers up to 16383"
        )
    return delay


def encoded_delay(delay: float) -> int | None:
    """A delay's entry in the table: a multiplier of 14 bits, and its shift in the bits above."""
    for shift in range(4):
        multiplier = delay * (1 << shift)
        if multiplier == int(multiplier) and multiplier < 1 << 14:
            return shift << 14 | int(multiplier)
    return None


Delay = Annotated[float, Field(ge=0), AfterValidator(_encodable)]


@register("cct", "InfiniBand's congestion control table", key="cct")
class Cct(Control):
    """A NIC's congestion control table, and the parameters of the index into it."""

    elsewhere = frozenset({"cct", "answer"})

    answer: Literal["cnp", "ack"] = Field(
        default="cnp",
        alias="becn",
        description="The packet that carries a BECN: a CNP for each mark, or the next ACK.",
        json_schema_extra=note(
            why="a CNP comes back at once, an ACK only when there is one to send",
            source=references.IBTA_CC,
        ),
    )

    ccti_increase: Integer = Field(
        default=1,
        ge=1,
        le=255,
        description="Each BECN adds this to the index.",
        json_schema_extra=note(
            unit="entries",
            why="the smallest step, and the default of NVIDIA's congestion control manager",
            source=references.MLNX_OFED_CC,
        ),
    )
    ccti_timer: CctiTimer = Field(
        default=10,
        ge=1,
        le=0xFFFF,
        description="Time until the index falls by 1, in units of 1.024 us.",
        json_schema_extra=note(
            unit="1.024 us",
            why="our choice: 10 us, so that senders reach full speed soon after the "
            "congestion; NVIDIA's congestion control manager works it out from the number of "
            "nodes; its manual does not say how",
            source=references.MLNX_OFED_CC,
        ),
    )
    ccti_min: Integer = Field(
        default=0,
        ge=0,
        le=255,
        description="Initial and lowest value of the index.",
        json_schema_extra=note(
            unit="entry",
            why="0: a sender without BECNs is not slowed at all",
            source=references.IBTA_CC,
        ),
    )
    cct: tuple[Delay, ...] = Field(
        default=tuple(step / 4 for step in range(128)),
        min_length=1,
        max_length=0x4000,
        description="The table: delay after a packet at each index, in times the packet took; "
        "multiples of 1/8 up to 16383. Its last index is the limit.",
        json_schema_extra=note(
            unit="packet times",
            why="our choice: a line in steps of 1/4, so that each step slows a little more, up to "
            "1/32.75 of the link; the standard names no table, and NVIDIA's congestion control "
            "manager works one out from the number of nodes",
            source=references.MLNX_OFED_CC,
        ),
    )

    @property
    def becn(self) -> Becn:
        """The receiver answers every FECN with a BECN."""
        return Becn(self.answer)

    @property
    def table(self) -> tuple[int, ...]:
        return tuple(encoded_delay(delay) or 0 for delay in self.cct)

    def parameters(self) -> dict[str, float]:
        """Limits ccti_min to the last index of the table."""
        ccti_min = min(self.ccti_min, len(self.cct) - 1)
        return {**super().parameters(), "ccti_min": float(ccti_min)}
