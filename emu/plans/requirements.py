"""What a fabric under test must do.

Unless the user requires something else, it is what its own settings say: the priorities with PFC
are to be lossless, the watchdog is to keep its own times. A plan then finds settings that do not
work together. Requirements from outside also find settings that are wrong:

    --emu-plan-require lossless=3,4 --emu-plan-require detection=200ms
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from emu.errors import UsageError
from emu.spec.classes import PRIORITIES
from emu.spec.diagnostic import did_you_mean
from emu.units import parse_size, parse_time


@dataclass(frozen=True)
class Requirements:
    """Values that the user requires; None: those of the fabric's own settings."""

    lossless: tuple[int, ...] | None = None
    """Priorities that must be lossless."""
    kmin: int | None = None
    """Bytes; so is kmax."""
    kmax: int | None = None
    pmax: float | None = None
    """From 0 to 1."""
    detection: int | None = None
    """Picoseconds; so is restoration."""
    restoration: int | None = None


def requirements_of(settings: Sequence[str]) -> Requirements:
    """From `KEY=VALUE`s. Raises UsageError for the first that is wrong."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in _KINDS:
            raise UsageError(
                f"--emu-plan-require {setting}: write KEY=VALUE, where KEY is one of "
                f"{', '.join(_KINDS)}{did_you_mean(key, _KINDS)}"
            )
        parse, example = _KINDS[key]
        try:
            values[key] = parse(value)
        except ValueError:
            raise UsageError(
                f"--emu-plan-require {setting}: {value!r} is no value of {key}; write "
                f"{key}={example}"
            ) from None
    return Requirements(**values)


def _priorities(text: str) -> tuple[int, ...]:
    found = tuple(sorted({int(part) for part in text.split(",")}))
    if not all(0 <= priority < PRIORITIES for priority in found):
        raise ValueError(text)
    return found


def _share(text: str) -> float:
    share = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


_KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "lossless": (_priorities, "3,4"),
    "kmin": (parse_size, "1MB"),
    "kmax": (parse_size, "2MB"),
    "pmax": (_share, "5%"),
    "detection": (parse_time, "200ms"),
    "restoration": (parse_time, "200ms"),
}
