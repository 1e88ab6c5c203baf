"""Confidence intervals: against scipy's bootstrap and Student's t, and how often they are right."""

from __future__ import annotations

import numpy as np
import pytest

from emu.measure.bootstrap import (
    FEWEST,
    RESAMPLES,
    Interval,
    interval_of,
    student_t_975,
    tail_of,
)

stats = pytest.importorskip("scipy.stats", reason="needs scipy (emu[sweep])")


@pytest.mark.parametrize("count", [5, 8, 20, 100])
def test_intervals_are_those_of_scipy(count: int) -> None:
    """At the expanded level. Both draw at random, so the ends agree within 4 % of the width; at the
    ends of few values a resample more or less is a whole step, within 10 %."""
    values = np.random.default_rng(count).exponential(10, count)
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=1 - 2 * tail_of(count),
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    ours = interval_of(values.tolist())
    assert ours.low is not None
    assert ours.high is not None
    allowed = (0.10 if count < 20 else 0.04) * (theirs.high - theirs.low)
    assert ours.low == pytest.approx(theirs.low, abs=allowed)
    assert ours.high == pytest.approx(theirs.high, abs=allowed)
    assert ours.mean == pytest.approx(values.mean())


def test_student_t_is_that_of_scipy() -> None:
    for freedom in (*range(1, 60), 200, 1000):
        assert student_t_975(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=3e-3)


def test_many_values_have_the_plain_percentiles() -> None:
    assert tail_of(10_000) == pytest.approx(0.025, rel=1e-2)


@pytest.mark.parametrize(("count", "least"), [(5, 0.88), (10, 0.92), (30, 0.93)])
def test_intervals_cover_the_true_mean(count: int, least: float) -> None:
    """Of 1,000 samples of a normal distribution, the interval has the mean of about 95 %. With five
    values no bootstrap reaches more than 94 % (1 - 2^-4)."""
    samples = np.random.default_rng(3).normal(0, 1, (1000, count))
    found = [interval_of(sample.tolist()) for sample in samples]
    inside = sum(own.low <= 0 <= own.high for own in found if own.low is not None and own.high)
    assert inside / len(samples) >= least


def test_the_same_values_give_the_same_interval() -> None:
    assert interval_of([3.0, 1.0, 4.0, 1.0, 5.0]) == interval_of([3.0, 1.0, 4.0, 1.0, 5.0])


def test_equal_values_are_their_own_interval() -> None:
    assert interval_of([0.1] * 7) == Interval(0.1, 0.1, 0.1, 7)


def test_one_value_has_no_interval() -> None:
    assert interval_of([5.0]) == Interval(5.0, None, None, 1)
    assert not interval_of([5.0]).excludes_zero


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        interval_of([])


def test_few_values_show_no_difference() -> None:
    """Four values of one sign are chance once in eight times."""
    assert not interval_of([1.0] * (FEWEST - 1)).excludes_zero
    assert interval_of([1.0] * FEWEST).excludes_zero
    assert interval_of([-1.0, -2.0, -3.0, -1.5, -2.5]).excludes_zero
    assert not interval_of([-1.0, 2.0, -3.0, 1.5, 2.5]).excludes_zero
