"""Who tells of congestion, and how: a receiver's CNPs, an InfiniBand switch's marks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec.base import Model
from emu.spec.quantities import Integer, Time


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
