"""Parameters that the core gets by name (emu/core/sim/parameter.h)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Parameters = Mapping[str, int | float | Sequence[int]]
"""Fields of a struct in the core -> their values: one, or one for each element of an array."""
