"""Friendly strings at the edge, integers inside.

"100Gbit" -> 100_000_000_000 bits/s     "96KB" -> 96_000 bytes     "64KiB" -> 65_536 bytes
"600ns" -> 600_000 picoseconds          "5m" of cable -> 25_000 picoseconds (5 ns/m)
"""

from __future__ import annotations

import re

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_S = 1_000_000_000_000
BPS_PER_MBPS = 1_000_000
PS_PER_METRE = 5_000
"""Light in fibre needs about 5 ns for a metre."""

_ACK_TIMEOUT_UNIT_PS = 4_096_000

_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-zµ%/]*)\s*")

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_RATES = {
    prefix + unit: factor
    for prefix, factor in _PREFIXES.items()
    for unit in ("bit", "bit/s", "bps", "b/s", "")
    if prefix or unit
}
"""`400G` and `100Gbps` are what data sheets have for 400Gbit and 100Gbit."""
_SIZES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_LARGEST = 2.0**62
"""What the core's 64-bit integers hold with room to add."""


class TooLarge(ValueError):
    """A quantity that no integer here holds."""


_TIMES = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12}


def ack_timeout_ps(code: int) -> int:
    """The retransmission timer that a code stands for: 4.096 us * 2^code (IBTA vol 1,
    9.7.6.1.3)."""
    return _ACK_TIMEOUT_UNIT_PS << code


def _parse(text: str, units: dict[str, int], example: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None and text.lstrip().startswith("-") and _NUMBER.fullmatch(text.lstrip()[1:]):
        raise ValueError(f"{text!r} is negative, and must be 0 or more; write it like {example}")
    if match is None or match[2].lower() not in units:
        raise ValueError(f"{text!r} is not understood; write it like {example}")
    value = float(match[1]) * units[match[2].lower()]
    if value > _LARGEST:
        raise TooLarge(f"{text!r} is too large, whatever it is for; write it like {example}")
    return round(value)


def _write(value: int, units: dict[str, int]) -> str:
    """The inverse of `_parse`, exactly: in the largest unit that needs no fraction."""
    unit = max((u for u in units if value % units[u] == 0), key=lambda u: units[u])
    return f"{value // units[unit]}{unit}"


def parse_rate(text: str) -> int:
    """Bits per second. Raises ValueError."""
    _refuse_bytes(text)
    return _parse(text, _RATES, "100Gbit")


def _refuse_bytes(text: str) -> None:
    """`GB` and `GB/s` count bytes, and a rate is in bits: it is not clear which was meant."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kKMGT])(B|b)(/s|ps)?\s*", text)
    if match is None or (match[3] == "b" and match[4]):
        return
    bits = f"{match[1]}{match[2]}bit"
    if match[3] == "b":
        raise ValueError(f"{text!r} may be bits or bytes (did you mean {bits!r}?)")
    raise ValueError(
        f"{text!r} counts bytes, and a rate is in bits per second; write it like 8Gbit"
    )


def parse_size(text: str) -> int:
    """Bytes; KB is 1000, KiB is 1024. Raises ValueError."""
    return _parse(text, _SIZES, "96KB or 64KiB")


def parse_time(text: str) -> int:
    """Picoseconds. Raises ValueError."""
    return _parse(text, _TIMES, "600ns or 55us")


def parse_length(text: str) -> int:
    """A cable's length in metres ("5m") as its one-way delay in picoseconds. Raises ValueError."""
    return _parse(text, {"m": PS_PER_METRE, "km": 1000 * PS_PER_METRE}, "5m")


def _rounded(value: float, digits: int) -> str:
    """With so many significant digits, and all of those before the point; 0: with six."""
    digits = digits or 6
    return f"{value:,.0f}" if abs(value) > 10**digits - 1 else f"{value:.{digits}g}"


def _format(value: float, steps: list[tuple[float, str]], digits: int) -> str:
    for step, unit in steps:
        if abs(value) >= step:
            return f"{_rounded(value / step, digits)}{unit}"
    return f"{value:g}{steps[-1][1]}"


def write_rate(bps: int) -> str:
    """As `parse_rate` reads it: 100_000_000_000 -> "100Gbit"."""
    return _write(bps, {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12})


def write_size(size: int) -> str:
    """As `parse_size` reads it: 96_000 -> "96KB", 65_536 -> "64KiB"."""
    return (
        "0B"
        if size == 0
        else _write(size, {"B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20})
    )


_TIME_UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def write_time(ps: int) -> str:
    """As `parse_time` reads it: 600_000 -> "600ns"."""
    return _write(ps, _TIME_UNITS)


def write_instant(ps: int) -> str:
    """All digits, with a fraction if needed: 7_500_000 -> "7.5us". `parse_time` reads it."""
    unit, size = max(
        ((name, size) for name, size in _TIME_UNITS.items() if size <= ps),
        key=lambda one: one[1],
        default=("s", 1),
    )
    whole, rest = divmod(ps, size)
    digits = len(str(size)) - 1
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".") + unit


def write_length(ps: int) -> str:
    """As `parse_length` reads it: 25_000 -> "5m"."""
    return f"{ps / PS_PER_METRE:.15g}m"


def format_rate(bps: float) -> str:
    return _format(
        bps, [(1e12, " Tb/s"), (1e9, " Gb/s"), (1e6, " Mb/s"), (1e3, " kb/s"), (1, " b/s")], 4
    )


def format_size(size: float) -> str:
    return _format(size, [(1e9, " GB"), (1e6, " MB"), (1e3, " KB"), (1, " B")], 4)


def format_time_ns(ns: float) -> str:
    return _format(ns, [(1e9, " s"), (1e6, " ms"), (1e3, " us"), (1, " ns")], 4)


def round_up(value: float) -> int:
    """A positive number to two digits, as people choose numbers: 1234.5 to 1300."""
    step: int = 10 ** max(0, len(str(int(value))) - 2)
    return int(-(-value // step) * step)
