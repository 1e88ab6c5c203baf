"""The Pareto front and the winner of trials that are made up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("optuna", reason="needs Optuna (emu[sweep])")

from hypothesis import given
from hypothesis import strategies as st

from emu.tuning.goals import Figure, Goal
from emu.tuning.search import is_dominated
from emu.tuning.trials import COMPLETE, PRUNED, Trial, front, winner

TIME = Goal(Figure("time", ("time_ns",)), maximise=False)
RATE = Goal(Figure("rate", ("rate_bps",)), maximise=True)


def trial(number: int, *means: float, how: str = COMPLETE) -> Trial:
    return Trial(number, {}, {}, {1: means}, how, {}, "")


def numbers(trials: Sequence[Trial]) -> list[int]:
    return [own.number for own in trials]


def test_means_are_over_the_seeds() -> None:
    own = Trial(0, {}, {}, {1: (2.0, 10.0), 2: (4.0, 30.0)}, COMPLETE, {}, "")
    assert own.means == [3.0, 20.0]


def test_with_one_goal_the_best_feasible_mean_wins() -> None:
    trials = [trial(0, 5.0), trial(1, 3.0), trial(2, 1.0, how=PRUNED), trial(3, 3.0)]
    assert numbers(front(trials, [TIME])) == [1]
    assert winner(trials, [TIME]) is trials[1]
    assert winner(trials[2:3], [TIME]) is None


def test_the_compromise_is_nearest_to_the_ideal() -> None:
    """Each end of the front is 1 from the ideal; the trial between them less."""
    trials = [trial(0, 1.0, 10.0), trial(1, 2.0, 90.0), trial(2, 5.0, 100.0), trial(3, 2.5, 80.0)]
    assert numbers(front(trials, [TIME, RATE])) == [0, 1, 2]
    assert winner(trials, [TIME, RATE]) is trials[1]


def test_a_trial_that_no_rival_beats_in_any_goal_goes_before_the_compromise() -> None:
    trials = [trial(0, 1.0, 10.0), trial(1, 2.0, 90.0), trial(2, 5.0, 100.0)]
    assert winner(trials, [TIME, RATE], [[9.0, 95.0]]) is trials[2]
    assert winner(trials, [TIME, RATE], [[0.5, 200.0]]) is trials[1], "none is: the compromise"


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_the_front_is_what_no_trial_beats(points: list[tuple[int, int]]) -> None:
    trials = [trial(n, float(x), float(y)) for n, (x, y) in enumerate(points)]
    found = {trials[n].means[0:2].__str__() for n in numbers(front(trials, [TIME, RATE]))}
    expected = {
        str([float(x), float(y)])
        for x, y in points
        if not any((a <= x and b >= y) and (a, b) != (x, y) for a, b in points)
    }
    assert found == expected
    assert len(front(trials, [TIME, RATE])) == len(expected)


def test_a_trial_is_dominated_if_another_is_better_in_all_goals_at_each_seed() -> None:
    own = {1: [5.0, 10.0], 2: [5.0, 10.0]}
    better = {1: [4.0, 11.0], 2: [4.0, 12.0], 3: [9.0, 1.0]}
    assert is_dominated(own, better, [TIME, RATE])
    assert not is_dominated(own, better | {2: [4.0, 10.0]}, [TIME, RATE])
    assert not is_dominated(own, better | {2: [6.0, 12.0]}, [TIME, RATE])
