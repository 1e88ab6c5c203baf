"""Which slowdown a run gets when its spec leaves the choice to us."""

from __future__ import annotations

from emu.spec.scenario import Spec
from topologies.graph import Topology


def choose_slowdown(spec: Spec, topology: Topology) -> tuple[float, tuple[str, ...]]:
    """The slowdown, and a note for the report where it was our choice."""
    if spec.slowdown != "auto":
        return spec.slowdown, ()
    return 1000.0, ("slowdown 1000",)
