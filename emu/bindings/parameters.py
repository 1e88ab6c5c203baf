"""Parameters that the core gets by name: the C structs, and the check that both sides agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emu._core import ffi
from emu.bindings.c_values import text
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
