"""InfiniBand's link rates by name: `4x NDR` is four lanes of 100 Gbit/s of data each.

A generation's name stands for what a lane carries after line coding: SDR, DDR and
QDR send 10 bits for 8, FDR and EDR 66 for 64; from HDR on the rates are nominal.
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
_NAME = re.compile(r"\s*([0-9]+)\s*x\s*([A-Za-z0-9]+)\s*")


def parse_ib_rate(text: str) -> int | None:
    """Bits/s of `4x NDR`; None when it is not written like that. Raises ValueError."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    width, generation = int(match[1]), match[2].upper()
    if width not in WIDTHS:
        raise ValueError(f"{text!r}: a link has 1, 2, 4, 8 or 12 lanes, not {width}")
    if generation not in LANE_BPS:
        raise ValueError(f"{text!r}: there is no {match[2]}; there is {', '.join(LANE_BPS)}")
    return width * LANE_BPS[generation]


def write_ib_rate(bps: int) -> str | None:
    """`4x NDR` of 400 Gbit/s, four lanes if that will do; None when no link has the rate."""
    names = {
        width * lane_bps: f"{width}x {generation}"
        for width in (12, 8, 2, 1, 4)
        for generation, lane_bps in LANE_BPS.items()
    }
    return names.get(bps)
