"""Axes of a sweep's pictures: varied keys and figures in fitting units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emu.report.figure import Axis
from emu.report.run_figures import unit_of, written
from emu.report.scale import Unit, rate_unit, size_unit, time_unit
from emu.sweeps.units import KeyColumn

_LOG_FROM = 20
"""The axis of a key is logarithmic if its largest value is so many times its smallest."""
_ROOM = 0.05
"""Of an axis beyond its first and last value."""


@dataclass(frozen=True)
class Scale:
    """A quantity with the unit that pictures write it in."""

    name: str
    unit: Unit

    @property
    def title(self) -> str:
        return f"{self.name} ({self.unit.name})" if self.unit.name else self.name

    def shown(self, value: float) -> float:
        return value / self.unit.size


def label_of(column: str) -> str:
    """`incast.last_completion_ns` -> `incast: last completion`."""
    unit = unit_of(column)
    words = column.removesuffix(f"_{unit}") if unit in ("ns", "bps", "bytes") else column
    of, _, what = words.rpartition(".")
    what = what.replace("_", " ")
    return f"{of}: {what}" if of else what


def figure_scale(column: str, values: Iterable[float]) -> Scale:
    """The scale of a figure with these values."""
    largest = max((abs(value) for value in values), default=0.0)
    return Scale(label_of(column), _fitting(unit_of(column), largest))


def key_scale(column: KeyColumn, values: Iterable[float]) -> Scale:
    """The scale of a varied key with these values."""
    largest = max((abs(value) for value in values), default=0.0)
    return Scale(column.key, _fitting(column.unit, largest))


def key_axis(scale: Scale, values: Sequence[float]) -> Axis:
    """An axis for these values, which are those of a key, in base units."""
    low, high = (scale.shown(end) for end in (min(values), max(values)))
    if low > 0 and high / low > _LOG_FROM:
        return Axis(low / 1.1, high * 1.1, scale.title, is_log=True)
    room = _ROOM * (high - low) or abs(high) * _ROOM or 1.0
    return Axis(low - room, high + room, scale.title)


def figure_axis(scale: Scale, values: Sequence[float]) -> Axis:
    """An axis for these values of a figure, in base units. It begins at 0 unless all values are
    close together; its ends are then those of the values."""
    low, high = (scale.shown(end) for end in (min(values), max(values)))
    begins = 0.0 if 0 <= low < high / 2 or low == high == 0 else low
    room = _ROOM * (high - begins) or abs(high) * _ROOM or 1.0
    return Axis(0.0 if begins == 0 else begins - room, high + room, scale.title)


def in_words(column: KeyColumn, value: object) -> str:
    """A cell of a varied key, for people."""
    if value is None:
        return "as in the spec"
    if column.unit in ("ns", "bps", "bytes") and isinstance(value, int | float):
        return written(value, column.unit)
    if column.unit and isinstance(value, int | float):
        return f"{value:g} {column.unit}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _fitting(unit: str, largest: float) -> Unit:
    if unit == "ns":
        return time_unit(largest)
    if unit == "bytes":
        return size_unit(largest)
    if unit == "bps":
        return rate_unit(largest)
    return Unit({"iops": "1/s", "m": "m"}.get(unit, ""), 1)
