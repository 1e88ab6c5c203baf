"""Compiles what ibsim's clients load before their own libraries: time-outs of management packets,
and the seed of OpenSM's random numbers."""

from __future__ import annotations

from pathlib import Path

from emu._build import core

PLACE = Path("emu/subnet/preload.so")
"""Where it lies in the package, and where developers find it."""
_SOURCES = [PLACE.with_name("mad_layer.c"), PLACE.with_name("random_seed.c")]


def build(variant: core.Variant, out: Path) -> bool:
    """Brings `out` up to date (a relative path starts at the root).

    False when it was. Raises BuildError.
    """
    objects = core.compile_all(variant, _SOURCES)
    if not core.is_stale(out, objects):
        return False
    core.link_library(variant, objects, out)
    return True
