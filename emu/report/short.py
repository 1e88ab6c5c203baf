"""Writes counts in few characters."""

from __future__ import annotations

_STEPS = (("k", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12), ("P", 10**15), ("E", 10**18))


def short_count(count: int) -> str:
    """The count in at most six characters: `99,999`, `123k`."""
    if count < 100_000:
        return f"{count:,}"
    unit, step = next((u, s) for u, s in _STEPS if count < 1000 * s)
    return f"{count / step:.3g}{unit}"
