"""Compiles the time-outs that programs have who ask ibsim: a library of one file."""

from __future__ import annotations

from pathlib import Path

from emu._build import core

PLACE = Path("emu/subnet/mad_layer.so")
"""Where it lies in the package, and where developers find it."""


def build(variant: core.Variant, out: Path) -> bool:
    """Brings `out` up to date (a relative path starts at the root).

    False when it was. Raises BuildError.
    """
    objects = core.compile_all(variant, [PLACE.with_suffix(".c")])
    if not core.is_stale(out, objects):
        return False
    core.link_library(variant, objects, out)
    return True
