"""Parameters of congestion control, under the names that their makers gave them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from emu.spec.base import Model
from emu.spec.quantities import Fraction, Integer, Rate, Size, Time


def _encodable(delay: float) -> float:
    if encoded_delay(delay) is None:
        raise ValueError(
            f"{delay} cannot be an entry of the table: it holds multiples of 1/8 up to 2047, of "
            "1/4 up to 4095, of 1/2 up to 8191 and whole numbers up to 16383"
        )
    return delay


def encoded_delay(delay: float) -> int | None:
    """A table's entry: a multiplier of 14 bits, and in the bits above how far it is shifted."""
    for shift in range(4):
        multiplier = delay * (1 << shift)
        if multiplier == int(multiplier) and multiplier < 1 << 14:
            return shift << 14 | int(multiplier)
    return None


Delay = Annotated[float, Field(ge=0), AfterValidator(_encodable)]


class Cnp(Model):
    """Which CNPs a receiver holds back; the interval is a parameter of `cc`."""

    per: Literal["qp", "ip-pair", "port"] = Field(
        default="qp",
        description="One CNP in an interval for each queue pair, for all queue pairs with the same "
        "sender, or for all of the port.",
    )
    delay_ps: Time = Field(
        default=0, alias="delay", description="From a marked packet's arrival to its CNP."
    )


class Fecn(Model):
    """Congestion marks of an InfiniBand switch, as its SwitchCongestionSetting has them."""

    threshold: Integer = Field(
        default=15,
        ge=1,
        le=15,
        description="When a lane's queue counts as congested: 15 from a sixteenth of a lane's "
        "buffer on, 1 from fifteen sixteenths.",
    )
    marking_rate: Integer = Field(
        default=0, ge=0, le=0xFFFF, description="Packets that pass unmarked between two marks."
    )
    packet_size: Integer = Field(
        default=8, ge=0, le=255, description="Smaller packets are not marked; in 64 bytes."
    )
    victim_mask: Literal["hosts", "all", "none"] = Field(
        default="hosts",
        description="Ports that mark though it is they who wait for credit: those to hosts, all "
        "or none.",
    )


class Cct(Model):
    """A NIC's congestion control table, and how the index into it moves."""

    ccti_increase: Integer = Field(
        default=1, ge=1, le=255, description="Added to the index by each BECN."
    )
    ccti_timer: Integer = Field(
        default=150, ge=1, le=0xFFFF, description="Until the index falls by 1; in 1.024 us."
    )
    ccti_min: Integer = Field(default=0, ge=0, le=255, description="Where the index stops falling.")
    cct: tuple[Delay, ...] = Field(
        default=tuple(step / 4 for step in range(128)),
        min_length=1,
        max_length=0x4000,
        description="The table: delay after a packet at each index, in times the packet took; "
        "multiples of 1/8 up to 16383. Its last index is the limit.",
    )


class Dcqcn(Model):
    """DCQCN's reaction and notification points, named as in the paper (SIGCOMM'15)."""

    g: Fraction = Field(
        default=1 / 256, gt=0, description="Weight of new congestion in alpha, e.g. 1/256."
    )
    rai_bps: Rate = Field(
        default=40_000_000, alias="rai", description="R_AI, the additive increase."
    )
    rhai_bps: Rate = Field(
        default=200_000_000, alias="rhai", description="R_HAI, the hyper increase."
    )
    min_rate_bps: Rate = Field(
        default=100_000_000,
        alias="min_rate",
        description="Rate below which a flow is never slowed.",
    )
    cnp_interval_ps: Time = Field(
        default=50_000_000,
        alias="cnp_interval",
        description="A receiver sends one CNP in this time; marks that come meanwhile make one "
        "more at its end.",
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
    )


class RoceCcEcn(Model):
    """NVIDIA's DCQCN: the parameters of `mlxconfig`, class ROCE_CC_ECN, in its units.

    The defaults are those of a ConnectX-6 Dx.
    """

    clamp_tgt_rate: bool = Field(
        default=False, description="Every reduction also sets the target rate to the current one."
    )
    clamp_tgt_rate_after_time_inc: bool = Field(
        default=True,
        description="The same for a reduction after an increase by time; after one by bytes it "
        "is always done.",
    )
    rpg_time_reset: Integer = Field(
        default=300, ge=1, lt=2**17, description="Time between increases of the rate, in us."
    )
    rpg_byte_reset: Integer = Field(
        default=32767,
        ge=0,
        lt=2**15,
        description="Bytes between increases of the rate; 0 increases by time alone.",
    )
    rpg_threshold: Integer = Field(
        default=1, ge=0, le=31, description="Steps of fast recovery before additive increase."
    )
    rpg_max_rate: Integer = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Rate in Mb/s at which a flow is no longer limited; 0 is the port's.",
    )
    rpg_ai_rate: Integer = Field(
        default=5, ge=0, le=1_000_000, description="Additive increase, in Mb/s."
    )
    rpg_hai_rate: Integer = Field(
        default=50, ge=0, le=1_000_000, description="Hyper increase, in Mb/s."
    )
    rpg_gd: Integer = Field(
        default=11,
        ge=0,
        le=15,
        description="A reduction is by alpha / 2^gd, alpha counted to 1024: 11 is alpha / 2.",
    )
    rpg_min_dec_fac: Integer = Field(
        default=50, ge=1, le=100, description="Per cent of its rate that a reduction leaves, least."
    )
    rpg_min_rate: Integer = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="Rate in Mb/s below which a flow is never slowed.",
    )
    rate_to_set_on_first_cnp: Integer = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Rate in Mb/s after the first CNP; 0 is rpg_max_rate.",
    )
    dce_tcp_g: Integer = Field(
        default=1019, ge=0, le=1024, description="Share of alpha that is kept, of 1024."
    )
    dce_tcp_rtt: Integer = Field(
        default=1, ge=1, lt=2**17, description="Time between updates of alpha, in us."
    )
    rate_reduce_monitor_period: Integer = Field(
        default=4, ge=0, lt=2**17, description="Least time between two reductions, in us."
    )
    initial_alpha_value: Integer = Field(
        default=1023, ge=0, le=1024, description="alpha at the first CNP, of 1024."
    )
    min_time_between_cnps: Integer = Field(
        default=4,
        ge=0,
        lt=2**17,
        description="A receiver sends no second CNP in this time, in us, and forgets marks "
        "meanwhile.",
    )
