"""Convergence to the fair share: rates that are known in advance."""

from __future__ import annotations

import numpy as np
import pytest

from emu.bmwg.convergence import distance_from, stable_since

TIME = np.arange(0, 1_000_001, 1_000, dtype=np.int64)
"""Samples each microsecond, for a millisecond."""
WINDOW = 20_000
FAIR = 8e9
"""A byte per nanosecond."""


def delivered(*rates: np.ndarray) -> np.ndarray:
    """Bytes so far of flows whose rates, in bytes per ns, are given for each interval."""
    grown = np.column_stack([np.cumsum(rate * 1_000) for rate in rates])
    return np.vstack([np.zeros((1, len(rates))), grown]).astype(np.int64)


def steps(first: float, second: float, at: int) -> np.ndarray:
    """A rate that changes after this many intervals."""
    return np.where(np.arange(1_000) < at, first, second)


def since(*rates: np.ndarray) -> int | None:
    times, away = distance_from(FAIR, TIME, delivered(*rates), (0, 1_000_000), WINDOW)
    return stable_since(times, away)


def test_flows_at_the_fair_share_are_stable_at_once() -> None:
    assert since(steps(1, 1, 0), steps(1, 1, 0)) == WINDOW


def test_flows_are_stable_from_the_last_one_that_arrives_at_its_share() -> None:
    """One flow reaches it after 200 us, the other after 300 us. A window may still have 1 - 0.1 of
    its time at the fair share and the rest at twice of it."""
    found = since(steps(2, 1, 200), steps(0, 1, 300))
    assert found is not None
    assert found == pytest.approx(300_000 + 0.9 * WINDOW, abs=1_000)


def test_a_flow_that_leaves_its_share_again_is_not_stable_before() -> None:
    swing = np.where((np.arange(1_000) > 500) & (np.arange(1_000) < 600), 1.5, 1.0)
    found = since(swing, steps(1, 1, 0))
    assert found is not None
    assert 600_000 < found < 600_000 + WINDOW


def test_a_flow_that_is_away_at_the_end_has_not_converged() -> None:
    assert since(steps(1, 0.5, 900), steps(1, 1, 0)) is None


def test_the_distance_is_that_of_the_furthest_flow() -> None:
    rates = steps(1.25, 1.25, 0), steps(0.9, 0.9, 0)
    _, away = distance_from(FAIR, TIME, delivered(*rates), (0, 1_000_000), WINDOW)
    assert away == pytest.approx(0.25)


def test_windows_lie_between_the_last_start_and_the_first_end() -> None:
    span = (100_000, 200_000)
    times, _ = distance_from(FAIR, TIME, delivered(steps(1, 1, 0)), span, WINDOW)
    assert (times[0], times[-1]) == (120_000, 200_000)
