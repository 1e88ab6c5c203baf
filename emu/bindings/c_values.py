"""Values in the form in which the C core takes them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from emu._core import ffi
from topologies.graph import Port


@cache
def text(word: str) -> Any:
    """A C string, which lives as long as this module."""
    return ffi.new("char[]", word.encode())


def mask(numbers: Iterable[int]) -> int:
    """One bit for each number, however often it is given."""
    return sum(1 << number for number in set(numbers))


def mac_of(port: Port) -> bytes:
    return bytes.fromhex(port.mac.replace(":", ""))
