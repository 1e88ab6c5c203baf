"""The kernel's words for the rate of a port."""

from __future__ import annotations

import pytest

from emu.ib_rates import parse_ib_rate
from emu.lab.rdma_sysfs.rate import rate_text

GBIT = 10**9


@pytest.mark.parametrize(
    ("gbit", "text"),
    [
        (1, "2.5 Gb/sec (1X SDR)"),
        (10, "10 Gb/sec (1X QDR)"),
        (25, "25 Gb/sec (1X EDR)"),
        (40, "40 Gb/sec (4X QDR)"),
        (100, "100 Gb/sec (4X EDR)"),
        (200, "200 Gb/sec (4X HDR)"),
        (400, "400 Gb/sec (4X NDR)"),
        (800, "800 Gb/sec (4X XDR)"),
        (300, "400 Gb/sec (4X NDR)"),
        (1600, "800 Gb/sec (4X XDR)"),
    ],
)
def test_an_ethernet_port_has_mlx5s_lanes(gbit: int, text: str) -> None:
    assert rate_text(gbit * GBIT, ethernet=True) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("1x SDR", "2.5 Gb/sec (1X SDR)"),
        ("4x QDR", "40 Gb/sec (4X QDR)"),
        ("4x FDR10", "40 Gb/sec (4X FDR10)"),
        ("4x FDR", "56 Gb/sec (4X FDR)"),
        ("4x EDR", "100 Gb/sec (4X EDR)"),
        ("2x HDR", "100 Gb/sec (2X HDR)"),
        ("4x HDR", "200 Gb/sec (4X HDR)"),
        ("4x NDR", "400 Gb/sec (4X NDR)"),
        ("8x NDR", "800 Gb/sec (8X NDR)"),
        ("4x XDR", "800 Gb/sec (4X XDR)"),
    ],
)
def test_an_infiniband_port_has_the_lanes_of_its_name(name: str, text: str) -> None:
    rate = parse_ib_rate(name)
    assert rate is not None
    assert rate_text(rate, ethernet=False) == text


@pytest.mark.parametrize(
    ("gbit", "text"),
    [
        (100, "100 Gb/sec (4X EDR)"),
        (200, "200 Gb/sec (4X HDR)"),
        (400, "400 Gb/sec (4X NDR)"),
        (800, "800 Gb/sec (4X XDR)"),
        (30, "40 Gb/sec (4X QDR)"),
        (1600, "1600 Gb/sec (8X XDR)"),
    ],
)
def test_an_infiniband_port_without_a_name_has_four_lanes(gbit: int, text: str) -> None:
    """As far as four suffice."""
    assert rate_text(gbit * GBIT, ethernet=False) == text
