"""`cc: dctcp`: as much slower as packets were marked; cc_dctcp.c has the rules."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from emu.spec import references
from emu.spec.control.control import Becn, Control, InitialWindow, MaxWindow, refuse_windows
from emu.spec.notes import note
from emu.spec.quantities import Fraction


class Dctcp(Control):
    """DCTCP, named as in RFC 8257. Its marks want a step: ecn with kmin = kmax and pmax 100%.

    Of the defaults g is RFC 8257's (4.3) and initial_cwnd TCP's (RFC 6928).
    """

    hears_acks = True

    g: Fraction = Field(
        default=1 / 16,
        gt=0,
        description="Weight of a new window in alpha, e.g. 1/16.",
        json_schema_extra=note(
            why="RFC 8257 recommends 1/16 (section 4.3)", source=references.RFC8257
        ),
    )
    initial_cwnd: InitialWindow = 10
    max_cwnd: MaxWindow = 512

    @model_validator(mode="after")
    def _windows(self) -> Self:
        refuse_windows(self, self.initial_cwnd, self.max_cwnd)
        return self

    @property
    def becn(self) -> Becn:
        return Becn("ack")
