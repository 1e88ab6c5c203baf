"""The queue disciplines of switch ports in the C core (queue_discipline.h)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from emu._core import ffi, lib
from emu.bindings.parameters import CoreParameters, check, text
from emu.bindings.registry import with_parameters
from emu.spec.queue_discipline import Discipline


@cache
def core_disciplines() -> dict[str, frozenset[str]]:
    """The core's queue disciplines, and the names of the parameters of each."""
    return with_parameters(lib.queue_discipline_name, lib.queue_discipline_parameter)


class CoreDisciplines:
    """An array of `struct queue_discipline_config`, and the memory that it points to."""

    def __init__(self, disciplines: Sequence[Discipline], seed: int) -> None:
        """`seed`: of the random numbers of the disciplines."""
        self._parameters = [CoreParameters(discipline.parameters) for discipline in disciplines]
        self.array = ffi.new("struct queue_discipline_config[]", len(disciplines))
        for slot, parameters, discipline in zip(
            self.array, self._parameters, disciplines, strict=True
        ):
            _check(discipline)
            slot.name = text(discipline.name)
            slot.queues = sum(1 << queue for queue in discipline.queues)
            slot.seed = seed
            slot.parameters = parameters.array
            slot.parameter_count = len(discipline.parameters)

    def give_to(self, port: Any) -> None:
        """Enters the disciplines into a `struct switch_port_config`."""
        port.disciplines = self.array
        port.discipline_count = len(self.array)


def _check(discipline: Discipline) -> None:
    files = "emu/core/switch/queue_*.c"
    check("queue discipline", files, discipline.name, discipline.parameters, core_disciplines())
