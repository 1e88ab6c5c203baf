"""Parameters that the core gets by name: the C structs, and the check that both sides agree."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from emu._core import ffi
from emu.errors import FabricError
from emu.spec.parameters import Parameters


class CoreParameters:
    """An array of `struct parameter`, and the memory that it points to."""

    def __init__(self, parameters: Parameters) -> None:
        self._values = [
            ffi.new("uint64_t[]", [value] if isinstance(value, int) else list(value))
            for value in parameters.values()
        ]
        self.array = ffi.new("struct parameter[]", len(parameters))
        for slot, name, values in zip(self.array, parameters, self._values, strict=True):
            slot.name, slot.values, slot.count = text(name), values, len(values)


def check(
    what: str, files: str, name: str, given: Parameters, known: Mapping[str, frozenset[str]]
) -> None:
    """Raises FabricError unless the core's registry has an entry `name` with these parameters.

    `what` is the kind of entry, `files` the C files of such entries.
    """
    if name not in known:
        raise FabricError(f"the core has no {what} {name}; add {files} and run make setup")
    if unknown := given.keys() - known[name]:
        raise FabricError(
            f"the core's {what} {name} has no parameter {', '.join(sorted(unknown))}; compare its "
            f"model in emu/spec with the table in {files}"
        )


@cache
def text(word: str) -> Any:
    """A C string, which lives as long as this module."""
    return ffi.new("char[]", word.encode())
