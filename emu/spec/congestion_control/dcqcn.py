"""`cc: dcqcn`: DCQCN as in its paper (Zhu et al., SIGCOMM'15); cc_dcqcn.c has the rules."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from emu.spec import references
from emu.spec.congestion_control.control import Becn, Control
from emu.spec.congestion_control.registry import register
from emu.spec.notes import note
from emu.spec.quantities import Fraction, Integer, Rate, Size, Time


@register("dcqcn", "DCQCN as in its paper", key="dcqcn")
class Dcqcn(Control):
    """DCQCN's reaction and notification points, named as in the paper (SIGCOMM'15)."""

    model_config = ConfigDict(
        json_schema_extra=note(why="the paper's parameters", source=references.DCQCN)
    )

    slowest = "min_rate"
    elsewhere = frozenset({"cnp_interval_ps"})

    g: Fraction = Field(
        default=1 / 256, gt=0, description="Weight of new congestion in alpha, e.g. 1/256."
    )
    rai_bps: Rate = Field(
        default=40_000_000,
        alias="rai",
        description="R_AI, the additive increase.",
        json_schema_extra=note(
            why="the paper's value, for links of 40 Gbit/s", source=references.DCQCN
        ),
    )
    rhai_bps: Rate = Field(
        default=200_000_000,
        alias="rhai",
        description="R_HAI, the hyper increase.",
        json_schema_extra=note(
            why="the paper names no value; this is the one in the example of its authors' "
            "simulation code",
            source=references.DCQCN_NS3,
        ),
    )
    min_rate_bps: Rate = Field(
        default=100_000_000,
        alias="min_rate",
        description="Rate below which a flow is never slowed.",
        json_schema_extra=note(
            why="the paper names no value; low enough that several hundred flows share a link of "
            "100 Gbit/s",
            source=references.CONWEAVE,
        ),
    )
    cnp_interval_ps: Time = Field(
        default=50_000_000,
        alias="cnp_interval",
        description="A receiver sends at most one CNP in this time; marks that arrive meanwhile "
        "cause one more at its end.",
    )
    alpha_timer_ps: Time = Field(
        default=55_000_000,
        alias="alpha_timer",
        gt=0,
        description="alpha decays once in this time without a CNP.",
    )
    increase_timer_ps: Time = Field(
        default=55_000_000,
        alias="increase_timer",
        gt=0,
        description="Time between increases of the rate.",
    )
    byte_counter: Size = Field(
        default=10_000_000, gt=0, description="Bytes sent between increases of the rate."
    )
    fast_recovery: Integer = Field(
        default=5,
        ge=1,
        le=255,
        description="F, the steps of fast recovery before additive increase.",
        json_schema_extra=note(unit="steps"),
    )

    @property
    def becn(self) -> Becn:
        return Becn("cnp", self.cnp_interval_ps, keeps_marks=True)
