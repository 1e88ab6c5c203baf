"""How even a division is: of a link among flows, or of traffic among links.

    Jain's index   (sum x)^2 / (n sum x^2)     1: all equal;  1/n: one has everything
    max-mean ratio max x / mean x              1: all equal;  n: one has everything

Sources: Jain, Chiu and Hawe, DEC-TR-301, 1984 (the index);
draft-calabria-bmwg-ai-fabric-terminology (MMR).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Shares = Sequence[float] | NDArray[np.float64] | NDArray[np.int64]
"""What each has, in any unit."""


def jain_index(shares: Shares) -> float | None:
    """From 1/n to 1, without a unit; None if there is nothing to divide."""
    given = np.asarray(shares, dtype=np.float64)
    if not given.any():
        return None
    return float(given.sum() ** 2 / (len(given) * (given**2).sum()))


def max_mean_ratio(shares: Shares) -> float | None:
    """From 1 to n, without a unit; None if there is nothing to divide."""
    given = np.asarray(shares, dtype=np.float64)
    if not given.any():
        return None
    return float(given.max() / given.mean())
