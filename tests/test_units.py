"""Quantities as people write them."""

from __future__ import annotations

import pytest

from emu.units import format_time_ns, parse_time, write_instant, write_time


@pytest.mark.parametrize(
    ("ps", "text"),
    [
        (0, "0s"),
        (1, "1ps"),
        (1_500, "1.5ns"),
        (7_000_000, "7us"),
        (10**12 - 1, "999.999999999ms"),
        (7_179_246_274_999, "7.179246274999s"),
        (61 * 10**12, "61s"),
    ],
)
def test_instant_keeps_all_digits(ps: int, text: str) -> None:
    assert write_instant(ps) == text
    assert parse_time(text) == ps


def test_time_has_no_fraction() -> None:
    assert [write_time(ps) for ps in (0, 1_500, 7_000_000)] == ["0s", "1500ps", "7us"]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (12_345, "12.35 us"),
        (9_999e9, "9999 s"),
        (9_999.9e9, "10,000 s"),
        (60_254e9, "60,254 s"),
    ],
)
def test_times_for_people_have_no_exponent(ns: float, text: str) -> None:
    assert format_time_ns(ns) == text
