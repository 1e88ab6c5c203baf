"""The `routing:` key of switches: the choice among several equal paths."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from emu.spec import references
from emu.spec.base import Model
from emu.spec.bgp import Bgp
from emu.spec.notes import note
from emu.spec.quantities import Integer, Time

PACKET_KINDS = ("spray", "adaptive")
"""The kinds that choose a path for each packet, independent of its headers."""
OPENFLOW_KINDS = ("ecmp", "pinned")
"""The kinds that Open vSwitch supports by itself."""


class Routing(Model):
    """A switch's choice among equal next hops, and its reaction to lost links."""

    kind: Literal["ecmp", "ecmp-qp", "pinned", "flowlet", "spray", "adaptive"] = Field(
        default="ecmp",
        description="ecmp: by a hash over addresses and UDP ports. ecmp-qp: and over the "
        "destination QP. pinned: as `paths` says, others by ecmp. flowlet: anew after a gap. "
        "spray: each packet by itself, all next hops alike. adaptive: each packet by itself, to "
        "the shortest queue. On InfiniBand the subnet manager decides (ecmp), or spray or adaptive "
        "among its shortest paths.",
        json_schema_extra=note(
            why="what every switch does without further configuration; on InfiniBand it stands for "
            "the subnet manager's tables",
            source=references.RFC2992,
        ),
    )
    seed: Integer | None = Field(
        default=None,
        ge=0,
        lt=2**48,
        description="Seed of the hashes, each switch derives its own from it; the spec's unless "
        "given.",
        json_schema_extra=note(unit="a number"),
    )
    gap_ps: Time = Field(
        default=5_000_000,
        alias="gap",
        gt=0,
        description="flowlet: silence after which a flow may take another path.",
        json_schema_extra=note(
            why="longer than the paths of a data centre fabric differ, so that packets of a flow "
            "keep their order",
            source=references.FLOWLET,
        ),
    )
    sls: tuple[Annotated[Integer, Field(ge=0, le=15)], ...] | None = Field(
        default=None,
        min_length=1,
        description="spray, adaptive: on InfiniBand, the service levels whose packets are routed "
        "this way; others follow the subnet manager's tables. All service levels unless given.",
        json_schema_extra=note(unit="service levels"),
    )
    paths: dict[str, str] = Field(
        default={},
        description="pinned: name of a flow -> a switch on its path, e.g. "
        "{elephants.h1-h5: spine2}. Its acknowledgements return by ecmp.",
    )
    convergence_ps: Time = Field(
        default=100_000_000,
        alias="convergence",
        description="Time from a link's loss or return until the switch changes its routes; with "
        "control_plane: bgp, until it takes a port without a link out of them.",
        json_schema_extra=note(
            why="hardware that detects a lost link and takes it out of its groups by itself; a "
            "routing protocol takes far longer"
        ),
    )

    control_plane: Literal["static", "bgp"] = Field(
        default="static",
        description="static: routes are the shortest paths, in every switch at the same time. bgp: "
        "FRR runs on every switch of a RoCE fabric, and its routes are recorded with their times. "
        "InfiniBand's control plane is the subnet manager.",
        json_schema_extra=note(why="needs nothing but the fabric"),
    )
    bgp: Bgp = Field(default=Bgp(), description="Settings of BGP, where it is the control plane.")

    def balances(self, sl: int) -> bool:
        """Whether the switch chooses a path for each packet of a service level."""
        return self.kind in PACKET_KINDS and (self.sls is None or sl in self.sls)

    def seed_of(self, spec_seed: int) -> int:
        """The seed from which every switch derives that of its hashes."""
        return spec_seed if self.seed is None else self.seed
