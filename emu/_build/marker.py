"""Compiles the eBPF marker, so that no run needs a compiler.

It is left out where clang or libbpf's headers are missing: a lab does without,
and `emu check` says so.
"""

from __future__ import annotations

from pathlib import Path

from emu._build.core import ROOT, BuildError, is_stale
from emu.errors import FabricError, HostError
from emu.lab.marker.marker import OBJECT, SOURCES, compile_marker

PLACE = OBJECT.relative_to(ROOT)
"""Where the marker lies in the package, and where developers find it."""

_MADE_FROM = (*SOURCES, Path(__file__))


def build(out: Path) -> bool:
    """Brings `out` up to date (a relative path starts at the root).

    False when it was, or cannot be. Raises BuildError when the compiler refuses.
    """
    if not is_stale(out, _MADE_FROM):
        return False
    (ROOT / out).parent.mkdir(parents=True, exist_ok=True)
    try:
        compile_marker(ROOT / out)
    except HostError:
        return False
    except FabricError as error:
        raise BuildError(str(error)) from error
    return True
