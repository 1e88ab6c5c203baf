"""The file `rate` of a port: `100 Gb/sec (4X EDR)`, a number of lanes and the speed of each.

The kernel counts bits on the wire: a lane of SDR has 2.5 Gb/s, of which 2 are data. An Ethernet
port has the lanes and the speed that mlx5 gives to its link mode, in the words of InfiniBand.
"""

from __future__ import annotations

from emu.ib_rates import LANE_BPS, WIDTHS, width_of

_ON_THE_WIRE = {
    "SDR": 25,
    "DDR": 50,
    "QDR": 100,
    "FDR10": 100,
    "FDR": 140,
    "EDR": 250,
    "HDR": 500,
    "NDR": 1000,
    "XDR": 2000,
}
"""Tenths of a Gb/s of one lane, as the kernel rounds them."""
_GBIT = 10**9
_ETHERNET = (
    (1, 1, "SDR"),
    (5, 1, "DDR"),
    (10, 1, "QDR"),
    (25, 1, "EDR"),
    (40, 4, "QDR"),
    (50, 1, "HDR"),
    (56, 4, "FDR"),
    (100, 4, "EDR"),
    (200, 4, "HDR"),
    (400, 4, "NDR"),
    (800, 4, "XDR"),
)
"""Link modes: Gb/s, lanes, speed; the slowest first."""


def rate_text(rate_bps: int, *, ethernet: bool) -> str:
    """The rate of a port, without a line break. If no link has the rate: the next higher one, or
    the highest."""
    lanes, speed = (_ethernet if ethernet else _infiniband)(rate_bps)
    tenths = lanes * _ON_THE_WIRE[speed]
    half = ".5" if tenths % 10 else ""
    return f"{tenths // 10}{half} Gb/sec ({lanes}X {speed})"


def _ethernet(rate_bps: int) -> tuple[int, str]:
    modes = (mode for mode in _ETHERNET if mode[0] * _GBIT >= rate_bps)
    _, lanes, speed = next(modes, _ETHERNET[-1])
    return lanes, speed


def _infiniband(rate_bps: int) -> tuple[int, str]:
    width = width_of(rate_bps)
    for lanes in (width, *WIDTHS):
        for speed, lane_bps in LANE_BPS.items():
            if lanes * lane_bps >= int(rate_bps):
                return lanes, speed
    return WIDTHS[-1], [*LANE_BPS][-1]
