"""Reduces samples to the columns of a plot, and keeps peaks and totals.

A run may have a hundred thousand samples, a plot a few hundred columns. Levels
(queues) keep the highest value of each bin, because the peak is what fills a
buffer; growing counts (bytes, time paused) become the mean rate over each bin,
which adds up to the same total.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def bin_edges(start_ns: int, end_ns: int, bins: int) -> Floats:
    """The bins + 1 edges of equal bins over the window; `end_ns` must be after `start_ns`."""
    return np.linspace(start_ns, end_ns, bins + 1)


def peak_per_bin(time_ns: Ints, level: Ints, edges: Floats) -> Floats:
    """(n,) and (n, k) -> (bins, k): the highest level in each bin.

    A bin without a sample has the level of the sample before it.
    """
    peaks = np.empty((len(edges) - 1, level.shape[1]))
    places = np.searchsorted(time_ns, edges)
    for bin_, (first, last) in enumerate(pairwise(places)):
        held = max(0, first - 1) if first == last else first
        peaks[bin_] = level[held : max(last, held + 1)].max(axis=0, initial=0)
    return peaks


def rate_per_bin(time_ns: Ints, count: Ints, edges: Floats) -> Floats:
    """(n,) and (n, k) -> (bins, k): growth per nanosecond, mean over each bin.

    Between two samples the count is taken to grow evenly; before the first and
    after the last it stands still.
    """
    if len(time_ns) == 0:
        return np.zeros((len(edges) - 1, count.shape[1]))
    at_edges = _at(edges, time_ns, count)
    rates: Floats = np.diff(at_edges, axis=0) / np.diff(edges)[:, np.newaxis]
    return rates


def growth(
    time_ns: Ints,
    count: Ints,
    start_ns: int,
    end_ns: int,
    columns: Sequence[int] | None = None,
) -> Floats:
    """(n,) and (n, p) -> (k,): how much each count grew in the window, for these columns or for
    all. It reads only the rows of the window, so many short windows cost little."""
    if len(time_ns) == 0:
        return np.zeros(count.shape[1] if columns is None else len(columns))
    before, after = _at(bin_edges(start_ns, end_ns, 1), time_ns, count, columns)
    grown: Floats = after - before
    return grown


def _at(edges: Floats, time_ns: Ints, count: Ints, columns: Sequence[int] | None = None) -> Floats:
    """Like `np.interp` of each column, for all columns at once."""
    before = np.clip(np.searchsorted(time_ns, edges, side="right") - 1, 0, max(0, len(time_ns) - 2))
    after = np.minimum(before + 1, len(time_ns) - 1)
    gap = np.maximum(time_ns[after] - time_ns[before], 1)
    share = np.clip((edges - time_ns[before]) / gap, 0.0, 1.0)[:, np.newaxis]
    low: Floats = _rows(count, before, columns).astype(np.float64)
    values: Floats = low + (_rows(count, after, columns) - low) * share
    return values


def _rows(count: Ints, rows: Ints, columns: Sequence[int] | None) -> Ints:
    chosen: Ints = (
        count[rows] if columns is None else count[rows[:, np.newaxis], np.asarray(columns)]
    )
    return chosen
