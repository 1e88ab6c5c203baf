"""The columns of varied keys: numbers in base units where the values have units, else words.

switches.ecn.kmin    50KB   -> switches.ecn.kmin_bytes   50000
topology.spines      2      -> topology.spines           2
hosts.nic.cc         dcqcn  -> hosts.nic.cc              dcqcn
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from emu.explain import keys
from emu.spec.notes import UNIT
from emu.units import PS_PER_METRE, PS_PER_NS, parse_length, parse_rate, parse_size, parse_time


@dataclass(frozen=True)
class KeyColumn:
    """How the values of a key stand in tables."""

    key: str
    name: str
    """The column's name, which ends in the unit of its numbers."""
    unit: str
    """`bytes`, `ns`, `bps`, `m`; empty for plain numbers and words."""
    cell: Callable[[Any], Any]
    """The cell of a value."""
    is_number: bool


def key_column(key: str, values: Iterable[Any]) -> KeyColumn:
    """The column of a key that takes these values."""
    given = list(values)
    if all(type(value) in (int, float) for value in given) and not _quantity(key):
        return KeyColumn(key, key, "", lambda value: value, is_number=True)
    quantity = _quantity(key)
    if quantity and all(_reads(quantity[1], value) for value in given):
        unit, read = quantity
        return KeyColumn(key, f"{key}_{unit}" if unit else key, unit, read, is_number=True)
    return KeyColumn(key, key, "", as_word, is_number=False)


def as_word(value: Any) -> str:
    """A value as a word of a table."""
    return value if isinstance(value, str) else json.dumps(value)


def _share(value: Any) -> float:
    text = str(value)
    if text.endswith("%"):
        return float(text[:-1]) / 100
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)


def _size(value: Any) -> int:
    return parse_size(str(value))


_QUANTITIES: Sequence[tuple[str, str, Callable[[Any], float]]] = (
    ("bytes", "bytes", _size),
    ("time", "ns", lambda value: parse_time(str(value)) / PS_PER_NS),
    ("bits per second", "bps", lambda value: parse_rate(str(value))),
    ("metres", "m", lambda value: parse_length(str(value)) / PS_PER_METRE),
    ("a share", "", _share),
)
"""How the schema's unit begins, in whole words; the unit of the column; the reader of a value."""


def _quantity(key: str) -> tuple[str, Callable[[Any], float]] | None:
    """The unit of a key's numbers, and what reads a value; None for a key without unit."""
    for found in keys.matching(_path_in_schema(key)):
        unit = str(found.node.get(UNIT) or keys.resolved(found.node).get(UNIT, ""))
        for begins, name, read in _QUANTITIES:
            if f"{unit} ".startswith((f"{begins} ", f"{begins},")):
                return name, read
    return None


def _path_in_schema(key: str) -> tuple[str, ...]:
    """The key with a number for the name of an entry of `traffic:`, `faults:` and the like."""
    first, *rest = key.split(".")
    if first in ("traffic", "faults", "verify") and rest:
        rest[0] = "0"
    return (first, *rest)


def _reads(read: Callable[[Any], float], value: Any) -> bool:
    try:
        read(value)
    except (ValueError, ZeroDivisionError):
        return False
    return not isinstance(value, bool)
