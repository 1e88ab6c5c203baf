"""The queue disciplines of switch ports in the C core (queue_discipline.h)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from emu._core import ffi, lib
from emu.bindings.c_values import mask, text
from emu.bindings.parameters import CoreParameters, check
from emu.bindings.registry import with_parameters
from emu.errors import FabricError
from emu.spec.queue_discipline import Discipline


@cache
def core_disciplines() -> dict[str, frozenset[str]]:
    """The core's queue disciplines, and the names of the parameters of each."""
    return with_parameters(lib.queue_discipline_name, lib.queue_discipline_parameter)


class CoreDisciplines:
    """An array of `struct queue_discipline_config`, and the memory that it points to."""

    def __init__(self, disciplines: Sequence[Discipline], seed: int) -> None:
        """`seed`: of the random numbers of the disciplines. Raises FabricError."""
        if len(disciplines) > lib.PORT_DISCIPLINES:
            names = ", ".join(discipline.name for discipline in disciplines)
            raise FabricError(
                f"a port has {len(disciplines)} queue disciplines ({names}), and the core has room "
                f"for {lib.PORT_DISCIPLINES}; raise PORT_DISCIPLINES in "
                "emu/core/switch/queue_discipline.h"
            )
        self._parameters = [CoreParameters(discipline.parameters) for discipline in disciplines]
        self.array = ffi.new("struct queue_discipline_config[]", len(disciplines))
        for slot, parameters, discipline in zip(
            self.array, self._parameters, disciplines, strict=True
        ):
            check(
                "queue discipline",
                "emu/core/switch/queue",
                discipline.name,
                discipline.parameters,
                core_disciplines(),
            )
            slot.name = text(discipline.name)
            slot.queues = mask(discipline.queues)
            slot.seed = seed
            slot.parameters = parameters.array
            slot.parameter_count = len(discipline.parameters)

    def give_to(self, port: Any) -> None:
        """Enters the disciplines into a `struct switch_port_config`."""
        port.disciplines = self.array
        port.discipline_count = len(self.array)
