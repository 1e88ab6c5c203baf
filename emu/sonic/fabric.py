"""The fabric that configurations describe: nodes under emu's names, and cables.

SONiC's ToRRouter is emu's leaf, and its LeafRouter emu's spine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from emu.sonic.config_db import Config

ROLES = {
    "ToRRouter": "leaf",
    "LeafRouter": "spine",
    "SpineRouter": "core",
    "BackEndToRRouter": "leaf",
    "BackEndLeafRouter": "spine",
    "UpperSpineRouter": "core",
    "FabricSpineRouter": "core",
}
"""SONiC's types of devices -> roles in emu."""
OTHER_ROLE = "sw"
"""The role of switches of any other type, or of none."""
USUAL_TYPES = {role: type_ for type_, role in reversed(ROLES.items())} | {OTHER_ROLE: ""}
"""The type of each role, unless another one is given."""
SERVER = "Server"


class End(NamedTuple):
    """One end of a cable, by SONiC's names."""

    device: str
    port: str


@dataclass(frozen=True)
class FoundCable:
    """A cable, once for both ends. `a` is a switch with a file."""

    a: End
    b: End
    rate_bps: int
    metres: int


@dataclass
class Node:
    """A switch or a host: emu's name and the device's."""

    name: str
    device: str
    type: str = ""
    hwsku: str = ""
    config: Config | None = None
    ports: dict[str, str] = field(default_factory=dict)
    """emu's name of the port (`h1`, `spine1#2`) -> the device's."""


@dataclass(frozen=True)
class Cable:
    """A cable between two of emu's nodes."""

    a: str
    b: str
    rate_bps: int
    metres: int


@dataclass(frozen=True)
class Fabric:
    """All nodes and cables, in order of their names."""

    switches: tuple[Node, ...]
    hosts: tuple[Node, ...]
    cables: tuple[Cable, ...]
