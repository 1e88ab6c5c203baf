"""The judgement of rows that are made up: what is better, what is worse, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs Optuna (emu[sweep])")

from emu.tuning.goals import Constraint, Figure, Goal
from emu.tuning.held_out import WINNER, HeldOut, Load
from emu.tuning.judge import Judgement, Verdict, judge

TIME = Goal(Figure("time", ("time_ns",)), maximise=False)
RATE = Goal(Figure("rate", ("rate_bps",)), maximise=True)
CALM = Constraint(Figure("pauses", ("pauses",)), "=", 0)
OWN = Load(1, {})
MORE = Load(1.2, {"traffic.web.rate": "60Gbit"})
SEEDS = range(10)
NOISE = (3, -2, 0, 1, -1, 4, -4, 2, -3, 0)
"""What the seed does to both; its sum is 0."""


def rows(time: float, rate: float = 10.0, pauses: int = 0, **further: Any) -> dict[int, Any]:
    return {
        seed: {"time_ns": time + 20 * NOISE[seed], "rate_bps": rate, "pauses": pauses, "error": ""}
        | further
        for seed in SEEDS
    }


def judged(
    winner: dict[int, Any], rival: dict[int, Any], *, goals: tuple[Goal, ...] = (TIME,)
) -> Judgement:
    held_out = HeldOut([OWN], {(WINNER, 1): winner, ("rival", 1): rival})
    return judge(held_out, goals, [CALM], len(SEEDS))


def test_a_difference_beside_large_noise_of_the_seeds_is_seen() -> None:
    """Seeds move both by up to 80 ns; the difference of 5 ns is the same at each seed."""
    found = judged(rows(1000), rows(1005))
    assert found.contests[0].verdict is Verdict.BETTER
    assert found.is_accepted
    (gain,) = found.contests[0].gains.values()
    assert gain is not None
    assert (gain.mean, gain.low, gain.high) == (5, 5, 5)


def test_an_equal_rival_refuses_the_winner() -> None:
    found = judged(rows(1000), rows(1000))
    assert not found.is_accepted
    assert list(found.sentences()) == [
        "Refused: the winner is not shown to be better than rival (the spec's load)."
    ]


def test_a_difference_that_may_be_chance_refuses_the_winner() -> None:
    rival = {seed: row | {"time_ns": 1003 + 20 * NOISE[-seed]} for seed, row in rows(0).items()}
    assert judged(rows(1000), rival).contests[0].verdict is Verdict.SAME


def test_a_better_goal_does_not_make_up_for_a_worse_one() -> None:
    found = judged(rows(1000, rate=9), rows(1005, rate=10), goals=(TIME, RATE))
    assert found.contests[0].verdict is Verdict.WORSE
    assert "worse than rival" in next(found.sentences())


def test_one_better_goal_is_enough_if_none_is_worse() -> None:
    assert judged(rows(1000), rows(1005), goals=(TIME, RATE)).is_accepted


def test_a_winner_that_violates_a_constraint_is_refused() -> None:
    winner = rows(1000)
    winner[7] = winner[7] | {"pauses": 1}
    found = judged(winner, rows(2000))
    assert not found.is_accepted
    assert "violates a constraint, or does not finish, in 1 of 10" in next(found.sentences())


def test_a_rival_that_violates_a_constraint_is_beaten() -> None:
    assert judged(rows(1000), rows(900, pauses=4)).is_accepted


@pytest.mark.parametrize("change", [{"time_ns": None}, {"error": "no room"}])
def test_a_winner_that_fails_is_refused(change: dict[str, Any]) -> None:
    assert not judged(rows(1000, **change), rows(2000)).is_accepted


def test_every_load_must_show_it() -> None:
    held_out = HeldOut(
        [OWN, MORE],
        {
            (WINNER, 1): rows(1000),
            ("rival", 1): rows(1005),
            (WINNER, 1.2): rows(1500),
            ("rival", 1.2): rows(1400),
        },
    )
    found = judge(held_out, [TIME], [CALM], len(SEEDS))
    assert not found.is_accepted
    assert list(found.sentences()) == ["Refused: the winner is worse than rival (load x 1.2)."]
