"""The options of `emu init`."""

from __future__ import annotations

from dataclasses import dataclass

from emu.fabric_kind import FABRIC_KINDS, ROCE, FabricKind


@dataclass(frozen=True)
class StarterOptions:
    """Sizes are text as in a spec. None: `emu init` chooses."""

    name: str
    fabric: str = ROCE.name
    topology: str = "leaf-spine"
    hosts: int = 8
    switches: int | None = None
    """The number of leaves, or of switches in a ring or a parking lot."""
    spines: int | None = None
    gpus: int | None = None
    dimensions: tuple[int, ...] = ()
    rate: str = "100Gbit"
    length: str = "5m"
    pattern: str = "incast"
    size: str | None = None
    preset: str | None = None
    lossless: bool = True
    cc: str | None = None
    seed: int = 1
    compare: bool = False

    @property
    def kind(self) -> FabricKind:
        return FABRIC_KINDS[self.fabric]
