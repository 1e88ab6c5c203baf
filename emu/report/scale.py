"""Units for axes: one fitting unit for all values of an axis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit that is `size` times the base unit (ns, bytes, bit/s)."""

    name: str
    size: float


_TIMES = (Unit("s", 1e9), Unit("ms", 1e6), Unit("us", 1e3), Unit("ns", 1))
_SIZES = (Unit("GB", 1e9), Unit("MB", 1e6), Unit("KB", 1e3), Unit("B", 1))

_RATES = (
    Unit("Tb/s", 1e12),
    Unit("Gb/s", 1e9),
    Unit("Mb/s", 1e6),
    Unit("kb/s", 1e3),
    Unit("b/s", 1),
)


def time_unit(longest_ns: float) -> Unit:
    return _fitting(_TIMES, longest_ns)


def size_unit(largest_bytes: float) -> Unit:
    return _fitting(_SIZES, largest_bytes)


def rate_unit(largest_bps: float) -> Unit:
    return _fitting(_RATES, largest_bps)


def _fitting(units: tuple[Unit, ...], largest: float) -> Unit:
    """The largest unit that goes into `largest` at least twice."""
    return next((unit for unit in units if largest >= 2 * unit.size), units[-1])
