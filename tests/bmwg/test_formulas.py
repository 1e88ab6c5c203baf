"""The drafts' formulas against figures that a reader can compute by hand."""

from __future__ import annotations

import pytest

from emu.bmwg.inference import dispatch_bytes
from emu.bmwg.iterations import coefficient_of_variation
from emu.bmwg.jct import RATIO, roofline_ns
from emu.bmwg.kpi import Target, Unit
from emu.measure.fairness import jain_index, max_mean_ratio
from emu.measure.records import JobRecord
from traffic.job import Job, Kind

GB, MS = 10**9, 10**6


def collective(kind: Kind, size_bytes: int, ranks: int, took_ns: int) -> JobRecord:
    hosts = tuple(f"h{number}" for number in range(1, ranks + 1))
    return JobRecord.of(Job("job", kind, "ring", hosts, size_bytes), (0, took_ns), None)


@pytest.mark.parametrize(
    ("kind", "gb_per_s"),
    [
        (Kind.ALL_REDUCE, 175.0),
        (Kind.ALL_GATHER, 87.5),
        (Kind.REDUCE_SCATTER, 87.5),
        (Kind.ALL_TO_ALL, 87.5),
        (Kind.BROADCAST, 100.0),
    ],
)
def test_bus_bandwidth_of_1_gb_among_8_ranks_in_10_ms(kind: Kind, gb_per_s: float) -> None:
    assert collective(kind, GB, 8, 10 * MS).busbw_bytes_per_s == pytest.approx(gb_per_s * GB)


def test_roofline_adds_computation_and_transfer_of_each_iteration() -> None:
    """100 iterations of 10 ms and of 256 MB x 1.75 at 400 Gbit/s, which is 8.96 ms."""
    roofline = roofline_ns(10 * MS, 256e6 * 1.75, 400 * GB, iterations=100)
    assert roofline == pytest.approx(100 * 18.96 * MS)


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_equal_shares_have_the_best_index_and_one_share_the_worst(n: int) -> None:
    equal, one = [3.5] * n, [0.0] * (n - 1) + [9.0]
    assert jain_index(equal) == pytest.approx(1)
    assert max_mean_ratio(equal) == pytest.approx(1)
    assert jain_index(one) == pytest.approx(1 / n)
    assert max_mean_ratio(one) == pytest.approx(n)


def test_jain_index_of_1_2_3() -> None:
    assert jain_index([1, 2, 3]) == pytest.approx(36 / (3 * 14))


def test_nothing_to_divide_has_no_index() -> None:
    assert jain_index([0, 0]) is None
    assert max_mean_ratio([0, 0]) is None


def test_dispatch_payload_of_128_tokens_among_96_accelerators() -> None:
    """128 tokens to 8 experts each, 2048 elements of one byte: 21.8 KB."""
    assert dispatch_bytes(128, 8, 2048, 96) == pytest.approx(21_845.33, abs=0.01)


@pytest.mark.parametrize(
    ("ratio", "mark"),
    [
        (0.9, "at most 1.05"),
        (1.05, "at most 1.05"),
        (1.051, "at most 1.15"),
        (1.15, "at most 1.15"),
        (1.16, "above 1.15"),
    ],
)
def test_jct_ratio_has_two_marks(ratio: float, mark: str) -> None:
    assert RATIO.target is not None
    assert RATIO.target.mark(ratio) == mark


def test_a_target_may_want_more() -> None:
    target = Target(90, more_is_better=True)
    assert [target.mark(value) for value in (89.9, 90, 97)] == [
        "below 90",
        "at least 90",
        "at least 90",
    ]


def test_coefficient_of_variation_is_sample_deviation_over_mean() -> None:
    assert coefficient_of_variation([9, 10, 11]) == pytest.approx(0.1)
    assert coefficient_of_variation([5, 5, 5]) == 0
    assert coefficient_of_variation([5]) is None
    assert coefficient_of_variation([-1, 1]) is None


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (Unit.BYTES_PER_S, 175e9, "175 GB/s"),
        (Unit.NS, 1_128_900, "1.129 ms"),
        (Unit.BPS, 98e9, "98 Gb/s"),
        (Unit.BYTES, 2_293_008, "2.293 MB"),
        (Unit.RATIO, 0.98765, "0.9877"),
        (Unit.PERCENT, 12.5, "12.5 %"),
        (Unit.PPM, 0, "0 ppm"),
        (Unit.PER_S, 251_246.2, "251,246 /s"),
        (Unit.COUNT, 332, "332"),
    ],
)
def test_figures_are_written_with_their_unit(unit: Unit, value: float, text: str) -> None:
    assert unit.write(value) == text
