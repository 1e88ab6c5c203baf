"""Percentiles, by one definition for all of the project: numpy's `linear`, which pandas has, too.

    sorted values v[0] .. v[n-1], a share q:  h = q (n - 1);  between v[floor h] and v[ceil h],
                                              in proportion to h - floor h

It is number 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages (The American
Statistician, 1996). With few values a high percentile is close to the largest of them, so
print n beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64] | NDArray[np.float64]

DEFINITION = "Percentiles are numpy's `linear`, of the finished"
"""For the notes of tables."""


def percentiles(values: Numbers, shares: Sequence[float]) -> list[float]:
    """One for each share, 0 to 1. Of no values there are no percentiles."""
    if not len(values):
        raise ValueError("there are no percentiles of nothing")
    if len(values) == 1:
        return [float(values[0])] * len(shares)
    return [float(value) for value in np.quantile(values, shares, method="linear")]


def percentile(values: Numbers, share: float) -> float:
    """Of one share."""
    (value,) = percentiles(values, [share])
    return value
