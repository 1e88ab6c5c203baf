"""`cc: dctcp`: slows down in proportion to marked packets; cc_dctcp.c has the rules."""

from __future__ import annotations

from pydantic import Field

from emu.spec import references
from emu.spec.congestion_control.control import Becn, WindowControl
from emu.spec.congestion_control.registry import register
from emu.spec.notes import note
from emu.spec.quantities import Fraction


@register("dctcp", "DCTCP, which acts on the share of marked packets", key="dctcp")
class Dctcp(WindowControl):
    """DCTCP, with the names of RFC 8257. It requires step marking: kmin = kmax and pmax 100%.

    The default of g is RFC 8257's (4.3).
    """

    g: Fraction = Field(
        default=1 / 16,
        gt=0,
        description="Weight of a new window in alpha, e.g. 1/16.",
        json_schema_extra=note(
            why="RFC 8257 recommends 1/16 (section 4.3)", source=references.RFC8257
        ),
    )

    @property
    def becn(self) -> Becn:
        return Becn("ack")
