"""The names in a registry of the C core (sim/registry.h)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from emu._core import ffi


def names(name_at: Callable[[int], Any]) -> list[str]:
    """The names that the core has at the indices 0, 1, ... up to the first NULL."""
    pointers = iter(map(name_at, count()).__next__, ffi.NULL)
    return [ffi.string(pointer).decode() for pointer in pointers]


def with_parameters(
    name_at: Callable[[int], Any], parameter_at: Callable[[int, int], Any]
) -> dict[str, frozenset[str]]:
    """Each name in a registry, and the names of its entry's parameters."""
    return {
        name: frozenset(names(partial(parameter_at, index)))
        for index, name in enumerate(names(name_at))
    }
