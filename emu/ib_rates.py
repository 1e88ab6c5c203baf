"""InfiniBand's link rates by name: `4x NDR` is four lanes of 100 Gbit/s of data each.

A generation's name stands for what a lane carries after line coding: SDR, DDR and
QDR send 10 bits for 8, FDR and EDR 66 for 64; from HDR on the rates are nominal.

The number of lanes decides how long a symbol takes on each of them. A plain number of
bits/s means four lanes if a 4x link has that rate: 100 Gbit/s is 4x EDR rather than 2x HDR
or 1x NDR, while 25 Gbit/s can only be 1x EDR.
"""

from __future__ import annotations

import re
from fractions import Fraction

_GBIT = 10**9
LANE_BPS = {
    "SDR": 2 * _GBIT,
    "DDR": 4 * _GBIT,
    "QDR": 8 * _GBIT,
    "FDR10": 10 * _GBIT,
    "FDR": round(Fraction(140_625, 10_000) * _GBIT * 64 / 66),
    "EDR": 25 * _GBIT,
    "HDR": 50 * _GBIT,
    "NDR": 100 * _GBIT,
    "XDR": 200 * _GBIT,
}
"""Data rate of one lane in bits/s, slowest first."""
WIDTHS = (1, 2, 4, 8, 12)
_USUAL_WIDTH = 4
_WIDTH = {
    width * lane_bps: width
    for width in (12, 8, 2, 1, _USUAL_WIDTH)
    for lane_bps in LANE_BPS.values()
}
"""Bits/s -> lanes, for links of which only the rate is known."""
_NAME = re.compile(r"\s*([0-9]+)\s*x\s*([A-Za-z0-9]+)\s*")


class IbRate(int):
    """The bits/s of a link and its width in lanes; rates of different widths are not equal."""

    width: int

    def __new__(cls, bps: int, width: int) -> IbRate:
        rate = super().__new__(cls, bps)
        rate.width = width
        return rate

    def __reduce__(self) -> tuple[type[IbRate], tuple[int, int]]:
        return IbRate, (int(self), self.width)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int):
            return NotImplemented
        return int(self) == int(other) and self.width == width_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(int(self))


def width_of(bps: int) -> int:
    """The lanes of a link of this rate; 4 if no link has it."""
    if isinstance(bps, IbRate):
        return bps.width
    return _WIDTH.get(bps, _USUAL_WIDTH)


def parse_ib_rate(text: str) -> IbRate | None:
    """Parses `4x NDR`; None if the text has another form. Raises ValueError."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    width, generation = int(match[1]), match[2].upper()
    if width not in WIDTHS:
        raise ValueError(f"{text!r}: a link has 1, 2, 4, 8 or 12 lanes, not {width}")
    if generation not in LANE_BPS:
        raise ValueError(f"{text!r}: there is no {match[2]}; there is {', '.join(LANE_BPS)}")
    return IbRate(width * LANE_BPS[generation], width)


def write_ib_rate(bps: int) -> str | None:
    """The name of a rate: `4x NDR` for 400 Gbit/s; None if no link has the rate."""
    width = width_of(bps)
    generations = (name for name, lane_bps in LANE_BPS.items() if width * lane_bps == int(bps))
    return next((f"{width}x {generation}" for generation in generations), None)
