"""Binning preserves peaks and totals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from emu.measure.binning import bin_edges, growth, peak_per_bin, rate_per_bin


def column(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64).reshape(-1, 1)


def times(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def test_peak_is_the_highest_sample_of_its_bin() -> None:
    """One sample among many is enough."""
    peaks = peak_per_bin(times(0, 1, 2, 3), column(1, 9, 2, 3), bin_edges(0, 4, 2))
    assert peaks[:, 0].tolist() == [9, 3]


def test_bin_without_sample_keeps_the_previous_level() -> None:
    """A queue that was not sampled is not empty."""
    peaks = peak_per_bin(times(0, 30), column(5, 7), bin_edges(0, 40, 4))
    assert peaks[:, 0].tolist() == [5, 5, 5, 7]


def test_no_samples_give_zero_queue_and_rate() -> None:
    """An empty series gives zeros for every column."""
    nothing = np.zeros((0, 3), np.int64)
    assert not peak_per_bin(times(), nothing, bin_edges(0, 10, 2)).any()
    assert rate_per_bin(times(), nothing, bin_edges(0, 10, 2)).shape == (2, 3)


def test_growth_counts_only_the_window() -> None:
    """Between samples a count grows evenly."""
    assert growth(times(0, 100), column(0, 1000), 20, 70).tolist() == [500]


def test_growth_of_selected_columns_is_in_their_order() -> None:
    """In the order of the selection; without samples the growth is zero."""
    counts = np.column_stack([column(0, 1000), column(0, 10), column(5, 5)])
    assert growth(times(0, 100), counts, 20, 70).tolist() == [500, 5, 0]
    assert growth(times(0, 100), counts, 20, 70, [2, 0]).tolist() == [0, 500]
    assert growth(times(0, 100), counts, 50, 50, [0]).tolist() == [0]
    assert growth(times(), counts[:0], 20, 70, [1, 2]).tolist() == [0, 0]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.integers(1, 40))
def test_rates_add_up_to_the_growth(steps: list[int], bins: int) -> None:
    """For any bins, the sum of rate times width is the growth of the count."""
    count = np.cumsum(steps).reshape(-1, 1)
    edges = bin_edges(0, max(1, len(steps) - 1), bins)
    rates = rate_per_bin(np.arange(len(steps)), count, edges)
    total = float((rates[:, 0] * np.diff(edges)).sum())
    assert np.isclose(total, count[-1, 0] - count[0, 0], rtol=1e-9, atol=1e-3)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.integers(1, 40))
def test_highest_peak_survives_binning(levels: list[int], bins: int) -> None:
    """The deepest queue remains visible."""
    edges = bin_edges(0, len(levels), bins)
    peaks = peak_per_bin(np.arange(len(levels)), column(*levels), edges)
    assert peaks.max() == max(levels)


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=8, unique=True),
    st.integers(1, 7),
    st.integers(0, 2**32),
)
def test_growth_between_samples_is_interpolated(moments: list[int], bins: int, seed: int) -> None:
    """With numpy's interpolation, for all columns at once."""
    rng = np.random.default_rng(seed)
    count = np.sort(rng.integers(0, 10**12, (len(moments), 3)), axis=0)
    time_ns, edges = times(*sorted(moments)), bin_edges(0, 1200, bins)
    expected = [np.diff(np.interp(edges, time_ns, own)) / np.diff(edges) for own in count.T]
    np.testing.assert_allclose(rate_per_bin(time_ns, count, edges).T, expected, rtol=1e-9)
