"""The registry of congestion controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from emu.spec.congestion_control.control import Control

C = TypeVar("C", bound="type[Control]")


@dataclass(frozen=True)
class Entry:
    """A congestion control as a spec names it."""

    name: str
    """The value of `cc`."""
    title: str
    """Its description in explanations."""
    key: str | None
    """The key of its parameters next to `cc`; None: it has no parameters."""
    model: type[Control]


CONTROLS: dict[str, Entry] = {}
"""By name."""


def register(name: str, title: str, *, key: str | None) -> Callable[[C], C]:
    """Enters a model of parameters as the congestion control of that name."""

    def enter(model: C) -> C:
        CONTROLS[name] = Entry(name, title, key, model)
        return model

    return enter
