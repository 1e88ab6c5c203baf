"""What a change costs: differences seed by seed, and what is said in words."""

from __future__ import annotations

from typing import Any

from emu.sensitivities.change import Change, Kind
from emu.sensitivities.costs import Cost, cost_of
from emu.tuning.goals import Figure, Goal

GOAL = Goal(Figure("last completion", ("last_completion_ns",)), maximise=False)


def rows(*ends: float | None, **columns: Any) -> dict[int, dict[str, Any]]:
    return {
        seed: {"error": "", "last_completion_ns": end, "unfinished_flows": int(end is None)}
        | columns
        for seed, end in enumerate(ends)
    }


BEFORE = rows(100, 110, 120, 130, 140, pause_frames=10, checks_failed=0)


def cost(
    after: dict[int, dict[str, Any]], kind: Kind = Kind.SETTING, name: str = "kmin x 2"
) -> Cost:
    return cost_of(Change(name, kind, "", {}), BEFORE, after, [GOAL], ["pause_frames"])


def scaled(*factors: float, **columns: Any) -> dict[int, dict[str, Any]]:
    return rows(
        *(f * row["last_completion_ns"] for f, row in zip(factors, BEFORE.values(), strict=True)),
        **columns,
    )


def test_a_cost_is_the_mean_share_of_the_value_of_the_same_seed() -> None:
    own = cost(scaled(1.1, 1.2, 1.1, 1.2, 1.15))
    assert own.worst is not None
    assert round(own.worst.mean, 6) == 0.15
    assert own.is_costly


def test_a_difference_whose_interval_has_0_is_none() -> None:
    own = cost(scaled(1.2, 0.9, 1.1, 0.95, 1.05))
    assert own.worst is None
    assert own.amount == 0


def test_no_difference_is_shown_with_few_seeds() -> None:
    own = cost_of(Change("x", Kind.SETTING, "", {}), rows(100, 110), rows(200, 220), [GOAL], [])
    assert own.amount == 0


def test_a_small_difference_is_shown_but_is_no_cost() -> None:
    own = cost(scaled(1.02, 1.03, 1.02, 1.03, 1.02))
    assert own.worst is not None
    assert not own.is_costly


def test_flows_that_do_not_finish_cost_more_than_any_time() -> None:
    stuck = cost(rows(100, None, 120, 130, 140))
    slow = cost(scaled(9, 9, 9, 9, 9))
    assert sorted([slow, stuck], key=lambda own: own.order) == [stuck, slow]
    assert (stuck.stuck, stuck.is_costly) == (1, True)
    assert "unfinished flows: up to 1, in 1 of 5 seeds" in stuck.remarks


def test_flows_that_never_finished_are_not_the_fault_of_a_change() -> None:
    before = rows(None, 110, 120, 130, 140)
    own = cost_of(Change("x", Kind.SETTING, "", {}), before, before, [GOAL], [])
    assert (own.stuck, own.remarks) == (0, [])


def test_failed_runs_and_checks_are_said_in_words() -> None:
    failed = cost({**scaled(1, 1, 1, 1, 1), 2: {"error": "no route"}})
    assert failed.remarks == ["fails in 1 of 5 seeds: no route"]
    assert failed.is_costly
    checks = cost(scaled(1, 1, 1, 1, 1, checks_failed=2))
    assert checks.remarks == ["failed checks: up to 2, in 5 of 5 seeds"]


def test_a_disaster_with_few_seeds_alone_is_a_cost() -> None:
    """Though the interval of the mean contains 0."""
    one, three = cost(scaled(1, 1, 1, 50, 1)), cost(scaled(50, 1, 50, 60, 1))
    for own in (one, three):
        assert own.worst is not None
        assert own.worst.share is not None
        assert not own.worst.share.excludes_zero
        assert own.is_costly
    assert three.worst is not None
    assert three.worst.words == "+5,233 % with 3 of 5 seeds"
    assert one.worst is not None
    assert one.worst.words == "+4,900 % with 1 of 5 seeds"
    assert three.order < one.order < cost(scaled(1, 1, 1, 1, 1)).order


def test_seeds_that_are_hit_count_alone_even_if_the_interval_excludes_0() -> None:
    """The mean of all would be the figure of no run."""
    own = cost(scaled(12, 12, 12, 12, 1.01))
    assert own.worst is not None
    assert own.worst.share is not None
    assert own.worst.share.excludes_zero
    assert own.worst.words == "+1,100 % with 4 of 5 seeds"
    assert own.amount == 11


def test_seeds_that_are_hit_count_without_a_gap_to_the_others() -> None:
    own = cost(scaled(4.0, 2.1, 1.8, 0.5, 1.0))
    assert own.worst is not None
    assert own.worst.share is not None
    assert not own.worst.share.excludes_zero
    assert own.worst.words == "+205 % with 2 of 5 seeds"


def test_few_seeds_show_no_disaster_either() -> None:
    before, after = rows(100, 110), rows(100, 1100)
    own = cost_of(Change("x", Kind.SETTING, "", {}), before, after, [GOAL], [])
    assert own.amount == 0


def test_seeds_that_are_hit_alike_have_one_mean() -> None:
    own = cost(scaled(2.2, 1.9, 2.1, 2.0, 1.95))
    assert own.worst is not None
    assert own.worst.words == "+103 %"


def test_counts_are_compared_as_differences() -> None:
    (count,) = cost(scaled(1, 1, 1, 1, 1, pause_frames=25)).counts
    assert count.difference is not None
    assert (count.difference.mean, count.difference.excludes_zero) == (15, True)


def test_only_a_setting_can_be_a_gain() -> None:
    """A mistake that helps one figure does not say that the settings are bad."""
    better = scaled(0.8, 0.8, 0.8, 0.8, 0.8)
    assert cost(better).is_gain
    assert not cost(better, Kind.MISTAKE).is_gain
