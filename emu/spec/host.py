"""The `hosts:` section: a host is its RDMA NIC."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from emu.spec.base import Model
from emu.spec.quantities import Fraction, Integer, Rate, Size, Time

MTUS = (256, 512, 1024, 2048, 4096)
"""Path MTUs of InfiniBand and RoCE: bytes of payload in a packet."""

_PRIORITY_OF_DSCP = {26: 3, 48: 6, 46: 5}


def priority_of_dscp(dscp: int) -> int:
    """Priority a DSCP is carried on: 26 (RoCE) 3, 48 (CNP) 6, 46 5, all others DSCP / 8."""
    return _PRIORITY_OF_DSCP.get(dscp, dscp >> 3)


def _legal_mtu(mtu: int) -> int:
    if mtu not in MTUS:
        legal = ", ".join(map(str, MTUS))
        raise ValueError(f"an RDMA packet cannot carry {mtu} bytes of payload; choose {legal}")
    return mtu


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
        description="A receiver sends at most one CNP per flow in this time.",
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


class Nic(Model):
    """The RDMA NIC of a host."""

    mtu: Annotated[Integer, AfterValidator(_legal_mtu)] = Field(
        default=4096,
        description="Path MTU, payload bytes of a packet: 256, 512, 1024, 2048 or 4096.",
    )
    cc: Literal["none", "dcqcn"] = Field(default="none", description="Congestion control.")
    dcqcn: Dcqcn = Field(default=Dcqcn(), description="Parameters of DCQCN.")
    recovery: Literal["go-back-n"] = Field(
        default="go-back-n", description="What is sent again after a loss."
    )
    dscp: Integer = Field(
        default=26,
        ge=0,
        le=63,
        description="DSCP of RDMA packets. 26 rides on priority 3, 46 on 5, others on DSCP / 8.",
    )
    cnp_dscp: Integer = Field(
        default=48, ge=0, le=63, description="DSCP of CNPs. 48 rides on priority 6."
    )
    ack_every: Integer = Field(
        default=16, ge=1, le=1024, description="Packets of a message between acknowledgements."
    )
    timeout: Integer = Field(
        default=8, ge=1, le=31, description="Retransmission timer, 4.096 us times 2 to this power."
    )
    retry_count: Integer = Field(
        default=7,
        ge=0,
        le=7,
        description="Retransmissions without progress before a flow gives up.",
    )
    window: Integer | None = Field(
        default=None,
        ge=1,
        le=65_536,
        description="Packets that a queue pair may have in flight; no limit unless given.",
    )
    sl: Integer = Field(
        default=0,
        ge=0,
        le=15,
        description="Service level on InfiniBand, which chooses the virtual lane.",
    )

    @property
    def priority(self) -> int:
        """Priority of its RDMA packets on a RoCE fabric."""
        return priority_of_dscp(self.dscp)


class HostSpec(Model):
    """One host."""

    nic: Nic = Field(default=Nic(), description="The RDMA NIC.")


class HostDefaults(HostSpec):
    """All hosts, with what is different for a single one."""

    nodes: dict[str, HostSpec] = Field(
        default={},
        description="By name, e.g. {h1: {nic: {mtu: 1024}}}: what differs from the keys beside.",
    )
