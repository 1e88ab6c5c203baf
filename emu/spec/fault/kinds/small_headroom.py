"""Small headroom: a switch that keeps less headroom than PFC needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from emu.fabric_kind import FlowControl
from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault.kind import OnPorts, exactly_one, register
from emu.spec.headroom import HEADERS, headroom_of
from emu.spec.parameters import Parameters
from emu.spec.quantities import Fraction, Size
from emu.units import write_size
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec


@register
class SmallHeadroom(OnPorts):
    """Packets that arrive after a pause was sent find too little room, and are dropped."""

    key: ClassVar[str] = "small-headroom"
    meaning: ClassVar[str] = "A switch with too little headroom for PFC. RoCE only."
    unavailable: ClassVar = {
        FlowControl.CREDITS: "InfiniBand's credits need no headroom; leave it out, or "
        "use fabric: roce"
    }
    already: ClassVar[str] = "has too small a headroom already"
    drops_lossless: ClassVar[bool] = True

    headroom_bytes: Size | None = Field(
        default=None,
        alias="headroom",
        description="Room for packets that arrive after the pause, per port and lossless priority.",
    )
    fraction: Fraction | None = Field(
        default=None, gt=0, lt=1, description="The headroom as a part of the right one, e.g. 20%."
    )

    def is_at(self, spec: Spec, port: Port) -> bool:
        return spec.port(port).pfc is not None

    @property
    def missing(self) -> str:
        return "has no PFC, so it keeps no headroom; give it switches.pfc"

    def headroom_at(self, spec: Spec, port: Port) -> int:
        """Bytes per lossless priority while the fault lasts; never more than without it."""
        right = headroom_of(spec, port)
        wrong = self.headroom_bytes
        return min(right, int(right * (self.fraction or 0)) if wrong is None else wrong)

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        return {"headroom_bytes": self.headroom_at(spec, port)}

    def wrong_settings(
        self, at: KeyPath, spec: Spec, ports: Sequence[Port]
    ) -> Iterator[Diagnostic]:
        least = min(ports, key=lambda port: self.headroom_at(spec, port))
        size, right = self.headroom_at(spec, least), headroom_of(spec, least)
        key = (*at, "fraction" if self.headroom_bytes is None else "headroom")
        name = spec.topology.build().port_name[least]
        if all(self.headroom_at(spec, port) == headroom_of(spec, port) for port in ports):
            yield Diagnostic(
                key,
                f"{name} keeps no more than {write_size(right)} anyhow; lower it",
                about=(("switches",), ("topology",), ("hosts",)),
                idle_if_inherited=True,
            )
        elif size < spec.largest_mtu + HEADERS:
            yield Diagnostic(
                key,
                f"{write_size(size)} at {name} cannot hold one packet of mtu {spec.largest_mtu} "
                "and its headers. A switch pauses when a packet goes into its headroom, so it "
                "would never pause; raise it",
                about=(("switches",), ("topology",), ("hosts",)),
            )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        exactly_one(headroom=self.headroom_bytes, fraction=self.fraction)
        return self
