"""The `faults:` section: what goes wrong, where, from when on and for how long.

    faults:
      - {at: 100us, for: 50us, link-down: {cable: leaf1:spine1}}
      - {loss: {cable: leaf1:h1, direction: out, every: 256}}
      - {name: mad, at: 1ms, pause-storm: {host: h1, priority: 3}}
      - {at: 1ms, for: 1ms, wrong-map: {switch: leaf1, dscp: {26: 0}}}

A cable is meant by either of its ports. `direction` is seen from the port that was
named: `out` is what leaves by it, `in` what comes to it.

Faults of tuning (misconfiguration.py) are settings that are others while they last: of a switch's
ports, all of them or one, or of a NIC.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from emu.spec.base import Model
from emu.spec.classes import DscpKey
from emu.spec.notes import note
from emu.spec.quantities import Fraction, Integer, Priority, PriorityKey, Rate, Size, Time

MAX_PSNS = 64
"""Room in the core's list (`FAULT_PSNS`, fabric_api.h)."""


class _Kind(Model, ABC):
    """What a kind of fault has to tell."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The port or host as it was named."""


class _OnCable(_Kind):
    cable: str = Field(description="The cable, by one of its ports, e.g. leaf1:spine1.")

    @property
    def place(self) -> str:
        return self.cable


class OnHost(_Kind):
    """A fault in a host's NIC."""

    host: str = Field(description="Name of the host.")

    @property
    def place(self) -> str:
        return self.host


class OnPorts(_Kind):
    """A fault in a switch: of all its ports, or of one."""

    switch: str | None = Field(default=None, description="Name of the switch: all its ports.")
    port: str | None = Field(default=None, description="One port of a switch, e.g. leaf1:spine1.")

    @property
    def place(self) -> str:
        return self.switch or self.port or ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.switch is None) == (self.port is None):
            there = "none" if self.switch is None else "both"
            raise ValueError(f"where it is is told by one of switch, port; this has {there}")
        return self


class LinkDown(_OnCable):
    """A pulled plug: nothing passes, and what waits for the cable is discarded."""


class SwitchDown(_Kind):
    """A switch without power: all of its links are lost at once."""

    switch: str = Field(description="Name of the switch.")

    @property
    def place(self) -> str:
        return self.switch


class LinkFlap(_OnCable):
    """A loose plug: the link is down for a while at the start of every period."""

    period_ps: Time = Field(alias="period", gt=0, description="From one loss to the next.")
    down_ps: Time = Field(
        alias="down", gt=0, description="How long the link is down each time; less than period."
    )

    @model_validator(mode="after")
    def _comes_up_again(self) -> Self:
        if self.down_ps >= self.period_ps:
            raise ValueError(
                "down is not shorter than period, so the link would never come up; shorten "
                "down, or use link-down"
            )
        return self


class OnLine(_OnCable):
    """A fault that can be in one direction of a cable."""

    direction: Literal["both", "out", "in"] = Field(
        default="both",
        description="Seen from the port: what leaves by it, comes to it, or both.",
        json_schema_extra=note(why="a damaged cable usually hits both directions"),
    )


def _distinct(psns: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(psns)) < len(psns):
        raise ValueError("names a PSN twice; each is hit once")
    return psns


class Choosing(OnLine):
    """A fault that hits some packets, each direction by itself."""

    probability: Fraction | None = Field(
        default=None, gt=0, description="Share of packets that are hit, at random, e.g. 0.1%."
    )
    every: Integer | None = Field(
        default=None,
        ge=1,
        lt=2**63,
        description="Every n-th packet is hit.",
        json_schema_extra=note(unit="packets"),
    )
    psn: Annotated[
        tuple[Annotated[Integer, Field(ge=0, lt=2**24)], ...] | None, AfterValidator(_distinct)
    ] = Field(
        default=None,
        min_length=1,
        max_length=MAX_PSNS,
        description="Packets with these PSNs are hit, as a capture shows them, each the first "
        "time that it passes.",
        json_schema_extra=note(unit="PSNs"),
    )

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        given = [key for key in ("probability", "every", "psn") if getattr(self, key) is not None]
        if len(given) != 1:
            there = " and ".join(given) or "none"
            raise ValueError(
                f"which packets it hits is told by one of probability, every, psn; this has {there}"
            )
        return self


class Loss(Choosing):
    """The packets vanish."""


class Corruption(Choosing):
    """The packets arrive with a check sequence that is wrong."""


class Duplication(Choosing):
    """The packets arrive twice."""


class Reordering(Choosing):
    """The packets arrive late, behind those that follow them."""

    by_ps: Time = Field(
        default=5_000_000,
        alias="by",
        gt=0,
        description="How much later the packets arrive.",
        json_schema_extra=note(
            why="longer than a packet of 4096 bytes takes on any link from 10 Gbit/s, so others "
            "overtake it"
        ),
    )


class FlowControl(OnLine):
    """InfiniBand's credit updates are hit, and nothing else; each direction by itself."""

    probability: Fraction | None = Field(
        default=None, gt=0, description="Share of updates that are hit, at random, e.g. 10%."
    )
    every: Integer | None = Field(
        default=None,
        ge=1,
        lt=2**63,
        description="Every n-th update is hit.",
        json_schema_extra=note(unit="updates"),
    )
    effect: Literal["lost", "damaged"] = Field(
        default="lost",
        description="lost: they vanish. damaged: they arrive with a wrong LPCRC, and are counted.",
        json_schema_extra=note(why="an update that vanishes shows the recovery by the next one"),
    )

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if (self.probability is None) == (self.every is None):
            raise ValueError("which updates it hits is told by one of probability, every")
        return self


class Delay(OnLine):
    """All packets arrive later, in their order, as if the cable were longer."""

    by_ps: Time = Field(alias="by", gt=0, description="How much later, in each direction.")


class PauseStorm(OnHost):
    """The host's NIC pauses its switch without end."""

    priority: Priority = Field(
        default=3,
        description="The priority it pauses, 0 to 7.",
        json_schema_extra=note(unit="priority", why="the lossless priority by default"),
    )


class SlowReceiver(OnHost):
    """The host takes packets in at a lower rate than its link has."""

    rate_bps: Rate = Field(alias="rate", description="How fast it takes packets in.")
    buffer_bytes: Size = Field(
        default=100_000,
        alias="buffer",
        gt=0,
        lt=2**31,
        description="Room for waiting packets of each priority: full, the NIC pauses a lossless "
        "one and drops a lossy one. On InfiniBand credits say how many there can be.",
        json_schema_extra=note(why="some tens of packets, so that the pauses begin soon"),
    )


class WrongMap(OnPorts):
    """Packets that come in by the ports ride on other priorities, and are called by them there."""

    dscp: dict[DscpKey, Priority] | None = Field(
        default=None,
        min_length=1,
        description="Priority by DSCP, e.g. {26: 0}; others ride on what they did.",
    )
    pcp: dict[PriorityKey, Priority] | None = Field(
        default=None, min_length=1, description="The same by PCP, where that is trusted."
    )

    @property
    def wrong(self) -> tuple[str, dict[int, int]]:
        """`dscp` or `pcp`, and the priority of each code point."""
        return ("dscp", self.dscp) if self.dscp is not None else ("pcp", self.pcp or {})

    @model_validator(mode="after")
    def _one_map(self) -> Self:
        if (self.dscp is None) == (self.pcp is None):
            there = "none" if self.dscp is None else "both"
            raise ValueError(
                f"which packets it is about is told by one of dscp, pcp; this has {there}"
            )
        return self


class SmallHeadroom(OnPorts):
    """What arrives after a pause was sent finds less room than it needs, and is dropped."""

    headroom_bytes: Size | None = Field(
        default=None,
        alias="headroom",
        description="Bytes for what arrives after the pause, per port and lossless priority.",
    )
    fraction: Fraction | None = Field(
        default=None, gt=0, lt=1, description="The same as a part of what is there, e.g. 20%."
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.headroom_bytes is None) == (self.fraction is None):
            there = "none" if self.headroom_bytes is None else "both"
            raise ValueError(
                f"how little headroom is left is told by one of headroom, fraction; this has "
                f"{there}"
            )
        return self


class WrongEcn(OnPorts):
    """Queues of the ports that mark do so by another curve; what is not given is as it was."""

    kmin_bytes: Size | None = Field(
        default=None, alias="kmin", description="Depth up to which nothing is marked."
    )
    kmax_bytes: Size | None = Field(
        default=None,
        alias="kmax",
        lt=2**32,
        description="Depth from which every packet is marked.",
    )
    pmax: Fraction | None = Field(
        default=None, description="Probability of a mark just below kmax."
    )

    @model_validator(mode="after")
    def _some_key(self) -> Self:
        if self.kmin_bytes is None and self.kmax_bytes is None and self.pmax is None:
            raise ValueError("what is wrong is told by kmin, kmax, pmax; this has none")
        return self


class IgnoredCnps(OnHost):
    """The host's NIC ignores CNPs, and sends at line rate: ECN without DCQCN."""


KINDS = {
    "link-down": "link_down",
    "link-flap": "link_flap",
    "switch-down": "switch_down",
    "loss": "loss",
    "corruption": "corruption",
    "duplication": "duplication",
    "reordering": "reordering",
    "delay": "delay",
    "flow-control": "flow_control",
    "pause-storm": "pause_storm",
    "slow-receiver": "slow_receiver",
    "wrong-map": "wrong_map",
    "small-headroom": "small_headroom",
    "wrong-ecn": "wrong_ecn",
    "ignored-cnps": "ignored_cnps",
}
"""Key in a spec -> attribute of a fault."""

FaultKind = (
    LinkDown
    | LinkFlap
    | SwitchDown
    | Loss
    | Corruption
    | Duplication
    | Reordering
    | Delay
    | FlowControl
    | PauseStorm
    | SlowReceiver
    | WrongMap
    | SmallHeadroom
    | WrongEcn
    | IgnoredCnps
)


class Fault(Model):
    """One fault; exactly one of its kinds is there."""

    name: str | None = Field(
        default=None, min_length=1, description="Name in results; its kind and number unless given."
    )
    at_ps: Time = Field(
        default=0,
        alias="at",
        description="When it begins, in emulated time.",
        json_schema_extra=note(why="from the start of the run"),
    )
    for_ps: Time | None = Field(
        default=None, alias="for", gt=0, description="How long it lasts; to the end unless given."
    )
    link_down: LinkDown | None = Field(
        default=None, alias="link-down", description="A cable through which nothing passes."
    )
    link_flap: LinkFlap | None = Field(
        default=None, alias="link-flap", description="A cable that fails again and again."
    )
    switch_down: SwitchDown | None = Field(
        default=None, alias="switch-down", description="A switch that has lost its power."
    )
    loss: Loss | None = Field(default=None, description="Packets vanish on a cable.")
    corruption: Corruption | None = Field(
        default=None, description="Packets are damaged on a cable."
    )
    duplication: Duplication | None = Field(
        default=None, description="Packets arrive twice from a cable."
    )
    reordering: Reordering | None = Field(
        default=None, description="Packets arrive late from a cable, behind those that follow."
    )
    delay: Delay | None = Field(default=None, description="A cable that has become longer.")
    flow_control: FlowControl | None = Field(
        default=None,
        alias="flow-control",
        description="Credit updates vanish on a cable, or are damaged. InfiniBand only.",
    )
    pause_storm: PauseStorm | None = Field(
        default=None, alias="pause-storm", description="A NIC that pauses its switch without end."
    )
    slow_receiver: SlowReceiver | None = Field(
        default=None, alias="slow-receiver", description="A host that takes packets in slowly."
    )
    wrong_map: WrongMap | None = Field(
        default=None,
        alias="wrong-map",
        description="A switch that takes DSCPs or PCPs for other priorities. RoCE only.",
    )
    small_headroom: SmallHeadroom | None = Field(
        default=None,
        alias="small-headroom",
        description="A switch with too little headroom for PFC. RoCE only.",
    )
    wrong_ecn: WrongEcn | None = Field(
        default=None,
        alias="wrong-ecn",
        description="A switch that marks too late, say: with Kmin above XOFF. RoCE only.",
    )
    ignored_cnps: IgnoredCnps | None = Field(
        default=None,
        alias="ignored-cnps",
        description="A NIC that does not slow down at CNPs. RoCE only.",
    )

    @property
    def kind(self) -> str:
        """Its key in the spec."""
        return next(key for key, name in KINDS.items() if getattr(self, name) is not None)

    @property
    def what(self) -> FaultKind:
        """The parameters of its kind."""
        what: FaultKind = getattr(self, KINDS[self.kind])
        return what

    @property
    def end_ps(self) -> int | None:
        """When it is over; None: it lasts to the end of the run."""
        return None if self.for_ps is None else self.at_ps + self.for_ps

    def to_mapping(self) -> dict[str, Any]:
        """As in a spec, which `model_validate` reads again."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [key for key, name in KINDS.items() if getattr(self, name) is not None]
        if len(kinds) != 1:
            there = " and ".join(kinds) or "none"
            raise ValueError(f"a fault has exactly one of {', '.join(KINDS)}; this has {there}")
        return self


def fault_names(faults: tuple[Fault, ...]) -> list[str]:
    """The name of each: its own, or kind and place in the list, counted from 1."""
    return [fault.name or f"{fault.kind}-{number}" for number, fault in enumerate(faults, start=1)]
