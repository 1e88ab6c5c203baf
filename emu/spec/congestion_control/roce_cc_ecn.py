"""`cc: dcqcn-nvidia`: DCQCN of NVIDIA's NICs; cc_dcqcn_nvidia.c has the rules."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from emu.spec import references
from emu.spec.congestion_control.control import Becn, Control, In
from emu.spec.congestion_control.registry import register
from emu.spec.notes import note
from emu.spec.quantities import Integer, Priority
from emu.units import BPS_PER_MBPS, PS_PER_US

Microseconds = Annotated[Integer, In(Fraction(PS_PER_US))]
Megabits = Annotated[Integer, In(Fraction(BPS_PER_MBPS))]
Percent = Annotated[Integer, In(Fraction(1, 100))]
Of1024 = Annotated[Integer, In(Fraction(1, 1024))]


@register(
    "dcqcn-nvidia",
    "DCQCN of NVIDIA's NICs, with the parameters of mlxconfig",
    key="roce_cc_ecn",
)
class RoceCcEcn(Control):
    """NVIDIA's DCQCN: the parameters of `mlxconfig`, class ROCE_CC_ECN, in its units.

    The defaults are those of a ConnectX-6 Dx, except for CNP_802P_PRIO, which has no default here:
    the PCP of a CNP's VLAN tag is the priority of its DSCP.
    """

    model_config = ConfigDict(
        json_schema_extra=note(why="the default of a ConnectX-6 Dx", source=references.MLXCONFIG)
    )

    slowest = "rpg_min_rate"
    elsewhere = frozenset(
        {
            "min_time_between_cnps",
            "cnp_dscp",
            "cnp_802p_prio",
            "cnp_res_prio_mode",
            "roce_cc_prio_mask",
        }
    )

    clamp_tgt_rate: bool = Field(
        default=False, description="Every reduction also sets the target rate to the current one."
    )
    clamp_tgt_rate_after_time_inc: bool = Field(
        default=True,
        description="A reduction after an increase by time also sets the target rate to the "
        "current one; a reduction after an increase by bytes always does so.",
    )
    rpg_time_reset: Microseconds = Field(
        default=300,
        ge=1,
        lt=2**17,
        description="Time between increases of the rate, in us.",
        json_schema_extra=note(unit="us"),
    )
    rpg_byte_reset: Integer = Field(
        default=32767,
        ge=0,
        lt=2**15,
        description="Bytes between increases of the rate; 0 increases by time alone.",
        json_schema_extra=note(unit="bytes"),
    )
    rpg_threshold: Integer = Field(
        default=1,
        ge=0,
        le=31,
        description="Steps of fast recovery before additive increase.",
        json_schema_extra=note(unit="steps"),
    )
    rpg_max_rate: Megabits = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Rate in Mb/s at which a flow is no longer limited; 0 is the port's.",
        json_schema_extra=note(unit="Mbit/s"),
    )
    rpg_ai_rate: Megabits = Field(
        default=5,
        ge=0,
        le=1_000_000,
        description="Additive increase, in Mb/s.",
        json_schema_extra=note(unit="Mbit/s"),
    )
    rpg_hai_rate: Megabits = Field(
        default=50,
        ge=0,
        le=1_000_000,
        description="Hyper increase, in Mb/s.",
        json_schema_extra=note(unit="Mbit/s"),
    )
    rpg_gd: Integer = Field(
        default=11,
        ge=0,
        le=15,
        description="A reduction is by alpha / 2^gd, alpha counted to 1024: 11 is alpha / 2.",
        json_schema_extra=note(unit="a power of 2"),
    )
    rpg_min_dec_fac: Percent = Field(
        default=50,
        ge=1,
        le=100,
        description="The least percentage of its rate that a reduction leaves.",
        json_schema_extra=note(unit="per cent"),
    )
    rpg_min_rate: Megabits = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="Rate in Mb/s below which a flow is never slowed.",
        json_schema_extra=note(unit="Mbit/s"),
    )
    rate_to_set_on_first_cnp: Megabits = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Rate in Mb/s after the first CNP; 0 is rpg_max_rate.",
        json_schema_extra=note(unit="Mbit/s"),
    )
    dce_tcp_g: Of1024 = Field(
        default=1019,
        ge=0,
        le=1024,
        description="Share of alpha that is kept, of 1024.",
        json_schema_extra=note(unit="1/1024"),
    )
    dce_tcp_rtt: Microseconds = Field(
        default=1,
        ge=1,
        lt=2**17,
        description="Time between updates of alpha, in us.",
        json_schema_extra=note(unit="us"),
    )
    rate_reduce_monitor_period: Microseconds = Field(
        default=4,
        ge=0,
        lt=2**17,
        description="Least time between two reductions, in us.",
        json_schema_extra=note(unit="us"),
    )
    initial_alpha_value: Of1024 = Field(
        default=1023,
        ge=0,
        le=1024,
        description="alpha at the first CNP, of 1024.",
        json_schema_extra=note(unit="1/1024"),
    )
    min_time_between_cnps: Microseconds = Field(
        default=4,
        ge=0,
        lt=2**17,
        description="A receiver sends at most one CNP in this time, in us; marks that arrive "
        "meanwhile are ignored.",
        json_schema_extra=note(unit="us"),
    )

    cnp_dscp: Integer | None = Field(
        default=None,
        ge=0,
        le=63,
        description="DSCP of CNPs; hosts.nic.cnp_dscp unless given.",
        json_schema_extra=note(unit="DSCP"),
    )
    cnp_802p_prio: Priority | None = Field(
        default=None,
        description="PCP of the VLAN tag of CNPs, and their priority; the priority of their DSCP "
        "unless given.",
        json_schema_extra=note(unit="priority"),
    )
    cnp_res_prio_mode: bool = Field(
        default=False,
        description="Whether CNPs take DSCP and priority from the packets that they answer.",
    )
    roce_cc_prio_mask: Integer = Field(
        default=255,
        ge=0,
        le=255,
        description="Priorities under control, one bit each: packets of other priorities are not "
        "slowed and cause no CNPs.",
        json_schema_extra=note(unit="a bit for each priority"),
    )

    @model_validator(mode="after")
    def _rates(self) -> Self:
        if 0 < self.rpg_max_rate < self.rpg_min_rate:
            raise ValueError(
                f"rpg_min_rate {self.rpg_min_rate} is above rpg_max_rate {self.rpg_max_rate}, "
                "so no flow would be slowed; lower it, or raise rpg_max_rate"
            )
        return self

    def why_off(self, priority: int) -> str | None:
        if self.roce_cc_prio_mask >> priority & 1:
            return None
        return (
            f"roce_cc_prio_mask leaves out priority {priority}, on which it sends; set its bit in "
            "hosts.nic.roce_cc_ecn.roce_cc_prio_mask"
        )

    def dscp_of_cnps(self, usual: int, data: int) -> int:
        if self.cnp_res_prio_mode:
            return data
        return usual if self.cnp_dscp is None else self.cnp_dscp

    @property
    def pcp_of_cnps(self) -> int | None:
        return None if self.cnp_res_prio_mode else self.cnp_802p_prio

    @property
    def becn(self) -> Becn:
        return Becn("cnp", self.min_time_between_cnps * PS_PER_US)
