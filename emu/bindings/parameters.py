"""Parameters that the core gets by name: the C structs, and the check that both sides agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from emu._core import ffi
from emu.bindings.c_values import text
from emu.errors import FabricError
from emu.spec.parameters import Parameters


class CoreParameters:
    """An array of `struct parameter`, and the memory that it points to."""

    def __init__(self, parameters: Parameters) -> None:
        self._values: list[Any] = []
        self.array = ffi.new("struct parameter[]", len(parameters))
        for slot, (name, value) in zip(self.array, parameters.items(), strict=True):
            slot.name = text(name)
            if isinstance(value, float):
                slot.reals, slot.count = self._keep("double[]", [value])
            else:
                integers = [value] if isinstance(value, int) else list(value)
                slot.values, slot.count = self._keep("uint64_t[]", integers)

    def _keep(self, c_type: str, values: list[int] | list[float]) -> tuple[Any, int]:
        self._values.append(ffi.new(c_type, values))
        return self._values[-1], len(values)


def check(
    what: str,
    files: str,
    name: str,
    given: Iterable[str],
    known: Mapping[str, frozenset[str]],
    *,
    complete: bool = True,
) -> None:
    """Raises FabricError unless the core's registry has an entry `name` with these parameters.

    `what`: the kind of entry. `files`: its C files, up to the name. With `complete`, every
    parameter of the entry must be given; otherwise those left out are 0.
    """
    file = f"{files}_{name.replace('-', '_')}.c"
    if name not in known:
        raise FabricError(f"the core has no {what} {name}; add {file} and run make setup")
    different = known[name] ^ set(given) if complete else set(given) - known[name]
    if different:
        raise FabricError(
            f"{what} {name}: only one of spec and core has {', '.join(sorted(different))}; compare "
            f"its model in emu/spec with the table in {file}"
        )
