"""The `bgp:` key of a switch's routing: settings of its BGP, under FRR's names.

All other options of FRR keep the defaults of its profile for data centers. Timers are those of the
emulated network: they run in emulated time.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from emu.spec import references
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import OFF, OFF_SCHEMA, OFF_WRITTEN, Integer, Priority, Time
from emu.units import write_time

_PS_PER_MS = 10**9
_PS_PER_S = 10**12
_SECONDS = "whole seconds, as FRR counts"


def _whole(value_ps: int, unit_ps: int, key: str, what: str) -> None:
    """Raises ValueError for a time that FRR cannot be given."""
    if value_ps % unit_ps:
        raise ValueError(f"{key}: {write_time(value_ps)} is not {what}")


class Bfd(Model):
    """Bidirectional Forwarding Detection: both ends of a cable send packets all the time, and take
    the session down when none come."""

    interval_ps: Time = Field(
        default=300 * _PS_PER_MS,
        alias="interval",
        ge=10 * _PS_PER_MS,
        le=60_000 * _PS_PER_MS,
        description="Time between two packets.",
        json_schema_extra=note(why="FRR's default", source=references.FRR_BFD),
    )
    multiplier: Integer = Field(
        default=3,
        ge=2,
        le=255,
        description="Packets that must be missing in a row for the session to go down.",
        json_schema_extra=note(unit="packets", why="FRR's default", source=references.FRR_BFD),
    )

    @model_validator(mode="after")
    def _can_be_told(self) -> Self:
        _whole(self.interval_ps, _PS_PER_MS, "interval", "whole milliseconds, as FRR counts")
        return self

    @property
    def interval_ms(self) -> int:
        return self.interval_ps // _PS_PER_MS


class Bgp(Model):
    """The BGP of a switch: one eBGP session on each cable to another switch."""

    asn: Integer | None = Field(
        default=None,
        ge=1,
        le=4_294_967_294,
        description="Number of its autonomous system. Unless given, each leaf has its own, "
        "the middle tier of a pod has one, and the top tier has one.",
        json_schema_extra=note(unit="a number", source=references.RFC7938),
    )
    keepalive_ps: Time = Field(
        default=3 * _PS_PER_S,
        alias="keepalive",
        ge=_PS_PER_S,
        le=65_535 * _PS_PER_S,
        description="Time between two keepalives, in whole seconds.",
        json_schema_extra=note(why="FRR's profile for data centers", source=references.FRR_BGP),
    )
    hold_ps: Time = Field(
        default=9 * _PS_PER_S,
        alias="hold",
        ge=3 * _PS_PER_S,
        le=65_535 * _PS_PER_S,
        description="Silence after which a session is down, in whole seconds.",
        json_schema_extra=note(why="FRR's profile for data centers", source=references.FRR_BGP),
    )
    connect_retry_ps: Time = Field(
        default=10 * _PS_PER_S,
        alias="connect_retry",
        ge=_PS_PER_S,
        le=65_535 * _PS_PER_S,
        description="Time between two attempts to connect, in whole seconds.",
        json_schema_extra=note(why="FRR's profile for data centers", source=references.FRR_BGP),
    )
    bfd: Annotated[Bfd | None, OFF, OFF_WRITTEN, OFF_SCHEMA] = Field(
        default=None,
        description="BFD on each session; off unless given. `on` takes FRR's defaults.",
        json_schema_extra=note(why="FRR must be told to use it", source=references.FRR_BFD),
    )
    maximum_paths: Integer = Field(
        default=64,
        ge=1,
        le=256,
        description="The most equal next hops of a route.",
        json_schema_extra=note(
            unit="next hops", why="FRR's own default", source=references.FRR_BGP
        ),
    )
    multipath_relax: bool = Field(
        default=True,
        description="Whether routes over different autonomous systems may be equal, if they are "
        "as long.",
        json_schema_extra=note(
            why="leaves differ in their numbers, so a spine's routes would not be equal without it",
            source=references.RFC7938,
        ),
    )
    priority: Priority = Field(
        default=7,
        description="Priority of the switch's packets of BGP and BFD on emulated cables, in a lab "
        "that stays up.",
        json_schema_extra=note(unit="priority", why="no other packet has it unless a spec says so"),
    )
    shutdown: tuple[str, ...] = Field(
        default=(),
        description="Switches with which this one has no session (neighbor ... shutdown).",
    )
    default_originate: bool = Field(
        default=False,
        description="Whether the switch announces a default route, over which nothing can be "
        "reached: a leak.",
        json_schema_extra=note(why="a fabric has no default route"),
    )
    frr_conf: str | None = Field(
        default=None,
        description="The switch's own frr.conf in place of the generated one, a file relative to "
        "the spec's folder. The other keys of bgp then have no effect, but for local_repair.",
    )
    local_repair: bool = Field(
        default=True,
        description="Whether the switch takes a port without a link out of its routes by itself, "
        "`convergence` after the loss. no: it waits for BGP.",
        json_schema_extra=note(why="hardware does it"),
    )

    @model_validator(mode="after")
    def _can_be_told(self) -> Self:
        for key in ("keepalive", "hold", "connect_retry"):
            _whole(getattr(self, f"{key}_ps"), _PS_PER_S, key, _SECONDS)
        if self.hold_ps < self.keepalive_ps:
            raise ValueError(
                f"hold: {write_time(self.hold_ps)} is shorter than keepalive, "
                f"{write_time(self.keepalive_ps)}, so no session would last"
            )
        return self
