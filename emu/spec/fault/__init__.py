"""The `faults:` section: what goes wrong, where, from when on and for how long.

    faults:
      - {at: 100us, for: 50us, link-down: {cable: leaf1:spine1}}
      - {loss: {cable: leaf1:h1, direction: out, every: 256}}
      - {name: storm, at: 1ms, pause-storm: {host: h1, priority: 3}}
      - {at: 1ms, for: 1ms, wrong-map: {switch: leaf1, dscp: {26: 0}}}

A kind of fault is one file of `kinds`, which registers itself, and one of the core with the same
name: `emu/core/fault/fault_*.c`. The file here holds everything that Python knows about the kind: a
model of its parameters, its rules for specs, and the values of its parameters in the core. A fault
has a key for each kind; nothing else lists the kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, create_model, model_validator

from emu.registry import import_modules
from emu.spec.base import Model
from emu.spec.fault import kinds
from emu.spec.fault.kind import KINDS, FaultKind
from emu.spec.notes import note
from emu.spec.quantities import Time

__all__ = ["KINDS", "Fault", "fault_names", "share_a_setting"]

import_modules(kinds.__name__, kinds.__path__)


class _Fault(Model):
    """One fault. It has exactly one of the keys that name a kind."""

    name: str | None = Field(
        default=None,
        min_length=1,
        description="Name in results; kind and number unless given.",
    )
    at_ps: Time = Field(
        default=0,
        alias="at",
        description="When it begins, in emulated time.",
        json_schema_extra=note(why="from the start of the run"),
    )
    for_ps: Time | None = Field(
        default=None, alias="for", gt=0, description="How long it lasts; to the end unless given."
    )

    @property
    def kind(self) -> str:
        """Its key in the spec."""
        return self.what.key

    @property
    def what(self) -> FaultKind:
        """The parameters of its kind."""
        return self._given[0]

    @property
    def _given(self) -> list[FaultKind]:
        values = (getattr(self, _attribute(key)) for key in KINDS)
        return [value for value in values if value is not None]

    @property
    def end_ps(self) -> int | None:
        """When it is over; None: it lasts to the end of the run."""
        return None if self.for_ps is None else self.at_ps + self.for_ps

    def to_mapping(self) -> dict[str, Any]:
        """The keys of the fault as in a spec; `model_validate` reads them again."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self._given) != 1:
            names = " and ".join(what.key for what in self._given) or "none"
            raise ValueError(f"a fault has exactly one of {', '.join(KINDS)}; this has {names}")
        return self


def _attribute(key: str) -> str:
    return key.replace("-", "_")


def _key_of(kind: type[FaultKind]) -> Any:
    """The optional key of a fault that names a kind."""
    return (kind | None, Field(default=None, alias=kind.key, description=kind.meaning))


if TYPE_CHECKING:
    Fault = _Fault  # the type checker cannot know the kinds
else:
    Fault = create_model(
        "Fault",
        __base__=_Fault,
        __doc__=_Fault.__doc__,
        __module__=__name__,
        **{_attribute(key): _key_of(kind) for key, kind in KINDS.items()},
    )


def fault_names(faults: tuple[Fault, ...]) -> list[str]:
    """The name of each: its own, or kind and place in the list, counted from 1."""
    return [fault.name or f"{fault.kind}-{number}" for number, fault in enumerate(faults, start=1)]


def share_a_setting(kind: str, place: str, other_kind: str, other_place: str) -> bool:
    """Whether two faults would change the same setting. A switch is the place of all its ports."""
    if kind != other_kind or not KINDS[kind].already:
        return False
    outer, inner = sorted((place, other_place), key=len)
    return inner == outer or inner.startswith(f"{outer}:")
