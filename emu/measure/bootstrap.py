"""Confidence intervals of means over seeds, by the bootstrap.

The means of 9,999 resamples, drawn with replacement, stand for the means that other seeds would
have given. The interval is between two percentiles of them, at the level of 95 %. For few seeds
these percentiles are too narrow, so they are expanded to the width that Student's t would have:
with n values, alpha/2 becomes Phi(-sqrt(n / (n - 1)) t(1 - alpha/2, n - 1)) (T. Hesterberg, What
Teachers Should Know About the Bootstrap, The American Statistician 69, 2015, "expanded percentile
interval"). With many values this is the percentile interval.

No resample lies beyond the values themselves. If chance alone makes a value positive or negative,
all n have one sign once in 2^(n-1) times: 1 in 16 with five. With fewer values nobody can tell a
difference at this level, so `Interval.excludes_zero` is false.

The draws are the same each time, so that the same values give the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 9_999
LEVEL = 0.95
FEWEST = 5
"""Values that a difference takes."""
METHOD = "expanded percentile bootstrap of the mean"
_SEED = 1


@dataclass(frozen=True)
class Interval:
    """A mean, and the interval that has the true mean at the level of LEVEL."""

    mean: float
    low: float | None
    """None for fewer than two values, as `high`."""
    high: float | None
    values: int
    """The number of values."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the values differ from 0, as far as this many can tell."""
        if self.low is None or self.high is None or self.values < FEWEST:
            return False
        return self.low > 0 or self.high < 0


def interval_of(values: Sequence[float]) -> Interval:
    """The mean of the values, with its interval. Raises ValueError if there are none."""
    given = np.asarray(values, dtype=np.float64)
    if not len(given):
        raise ValueError("no values, so no mean")
    mean = float(given.mean())
    if len(given) < 2:
        return Interval(mean, None, None, len(given))
    if (given == given[0]).all():
        return Interval(float(given[0]), float(given[0]), float(given[0]), len(given))
    tail = tail_of(len(given))
    low, high = np.quantile(_weights(len(given)) @ given, (tail, 1 - tail))
    return Interval(mean, float(low), float(high), len(given))


def tail_of(values: int) -> float:
    """The share of the resamples beyond each end of the interval, for so many values (from 2)."""
    student = student_t_975(values - 1)
    return NormalDist().cdf(-sqrt(values / (values - 1)) * student)


def method_in_words() -> str:
    """The method, as pages and documents state it."""
    return f"{METHOD}, {RESAMPLES:,} resamples, level {LEVEL:.0%}"


@cache
def _weights(values: int) -> NDArray[np.float64]:
    """(RESAMPLES, values): how often each value is in a resample, over the size of the resample."""
    drawn = np.random.default_rng(_SEED).integers(0, values, (RESAMPLES, values))
    counts = np.zeros((RESAMPLES, values))
    np.add.at(counts, (np.arange(RESAMPLES)[:, None], drawn), 1 / values)
    return counts


def student_t_975(freedom: int) -> float:
    """The 0.975 quantile of Student's t. From 30 degrees of freedom on, the first two terms of its
    expansion at the normal quantile, which is right to 0.3 %."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    normal = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2)
    return normal + (normal**3 + normal) / (4 * freedom)


_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045),
)
"""Of 1 to 29 degrees of freedom."""
