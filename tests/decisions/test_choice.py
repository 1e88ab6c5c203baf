"""The rules of a recommendation, on figures that are made up; each criterion decides once."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import emu
from emu.decisions.candidates import Candidate
from emu.decisions.choice import Choice, Evidence, choose
from emu.decisions.prices import Bill, BillLine
from emu.decisions.reasons import _among_the_near
from emu.decisions.standing import standings_of
from emu.decisions.turns import _by_margin, _by_price
from emu.sensitivities.change import Change, Kind
from emu.sensitivities.costs import Cost
from emu.sensitivities.measure import Result
from emu.tuning.goals import Figure, Goal

GBIT = 10**9
TIME = Goal(Figure("time", ("time_ns",)), maximise=False)
SPEC = emu.Spec(
    topology={"kind": "dumbbell", "hosts_per_side": 1},
    traffic=[{"name": "t", "pattern": "pair", "from": "h1", "to": "h2", "size": "1KB"}],
)


class _Costs(Result):
    """A side with costs that are given."""

    def __init__(self, costs: Sequence[Cost]) -> None:
        object.__setattr__(self, "given", costs)

    @property
    def costs(self) -> list[Cost]:
        return list(self.given)  # type: ignore[attr-defined]


def stuck(name: str) -> Cost:
    return Cost(Change(name, Kind.FAILURE, "", {}), [], [], 5, 5, [])


def rows(values: Sequence[float], **more: Any) -> dict[int, dict[str, Any]]:
    return {seed: {"time_ns": value, "error": "", **more} for seed, value in enumerate(values)}


def chosen(margin: float = 0.05, **given: Any) -> Choice | None:
    """Name -> (figures of the seeds, price, rate in Gbit/s, costs)."""
    return choose(evidence_of(given), TIME, margin)


def chosen_from(margin: float, **given: Any) -> tuple[Choice, dict[str, Evidence]]:
    evidence = evidence_of(given)
    choice = choose(evidence, TIME, margin)
    assert choice is not None
    return choice, evidence


def evidence_of(given: dict[str, Any]) -> dict[str, Evidence]:
    standings = standings_of({name: rows(own[0]) for name, own in given.items()}, TIME)
    evidence = {}
    for name, (_, price, rate, costs) in given.items():
        candidate = Candidate(name, name.replace("_", "-"), rate * GBIT, SPEC)
        lines = (BillLine("nic", "nic", 1, price, 0.0),)
        bill = None if price is None else Bill(lines, "EUR", 0.0)
        evidence[name] = Evidence(candidate, standings[name], bill, _Costs(costs), SHARED)
    return evidence


SHARED = ("slow receiver",)
FAST, ALIKE, SLOW = [100.0] * 5, [103.0] * 5, [120.0] * 5


def test_the_fastest_is_recommended_when_nothing_is_near() -> None:
    choice = chosen(a=(SLOW, 1, 100, []), b=(FAST, 9, 100, []))
    assert choice is not None
    assert (choice.best.name, len(choice.near), choice.criterion) == ("b", 1, None)
    assert choice.best.standing.behind is not None
    assert choice.best.standing.behind.mean == 0


def test_a_larger_margin_lets_the_cheaper_win() -> None:
    choice = chosen(0.2, a=(SLOW, 1, 100, []), b=(FAST, 9, 100, []))
    assert choice is not None
    assert choice.best.name == "a"
    assert choice.best.standing.behind is not None
    assert choice.best.standing.behind.mean == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("one", "other", "criterion"),
    [
        ((ALIKE, 8, 100, []), (FAST, 9, 100, []), "cost"),
        ((ALIKE, None, 100, []), (FAST, None, 200, []), "link rate"),
        ((ALIKE, None, 100, []), (FAST, None, 100, [stuck("link fails")]), "failures"),
        ((ALIKE, None, 100, []), (FAST, None, 100, [stuck("slow receiver")]), "tuning effort"),
        ((FAST, None, 100, [stuck("no subnet manager")]), (ALIKE, None, 100, []), None),
        ((FAST, None, 100, []), (ALIKE, None, 100, []), None),
    ],
)
def test_criteria_decide_in_their_order(one: Any, other: Any, criterion: str | None) -> None:
    choice = chosen(b=other, a=one)
    assert choice is not None
    assert choice.best.name == "a"
    assert [own.name for own in choice.near] == ["a", "b"]
    assert (choice.criterion.name if choice.criterion else None) == criterion


def test_what_needs_a_search_comes_after_what_does_not() -> None:
    choice = chosen(roce_tuned=(FAST, None, 100, []), plain=(ALIKE, None, 100, []))
    assert choice is not None
    assert (choice.best.name, choice.criterion and choice.criterion.name) == ("plain", "search")


def test_a_difference_that_seeds_cannot_show_is_none() -> None:
    noisy = [60.0, 140.0, 75.0, 160.0, 120.0]  # 11 % higher, though not with all seeds
    choice = chosen(a=(noisy, 1, 100, []), b=(FAST, 9, 100, []))
    assert choice is not None
    assert choice.best.name == "a"


def test_a_fabric_that_is_far_slower_with_few_seeds_is_not_near() -> None:
    rare = [100.0, 100.0, 100.0, 900.0, 100.0]
    choice = chosen(a=(rare, 1, 100, []), b=(FAST, 9, 100, []))
    assert choice is not None
    assert [own.name for own in choice.near] == ["b"]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"unfinished_flows": 2}, "flows do not finish with 5 of 5 seeds"),
        ({"checks_failed": 1}, "checks fail with 5 of 5 seeds"),
        ({"error": "no"}, "the run fails with 5 of 5 seeds"),
    ],
)
def test_what_does_not_fit_is_no_choice(more: dict[str, Any], fault: str) -> None:
    standings = standings_of({"a": rows(FAST, **more), "b": rows(SLOW)}, TIME)
    assert standings["a"].faults == [fault]
    assert standings["b"].behind is not None
    assert standings["b"].behind.mean == 0  # it is the fastest of those that fit
    assert not standings["a"].is_near(1.0)


def test_rates_are_better_when_large() -> None:
    rate = Goal(Figure("rate", ("time_ns",)), maximise=True)
    standings = standings_of({"a": rows(FAST), "b": rows(SLOW)}, rate)
    assert standings["a"].behind is not None
    assert standings["a"].behind.mean == pytest.approx(20 / 120)


def test_nothing_is_recommended_when_nothing_fits() -> None:
    standings = standings_of({"a": rows(FAST, unfinished_flows=1)}, TIME)
    candidate = Candidate("a", "a", 100 * GBIT, SPEC)
    evidence = {"a": Evidence(candidate, standings["a"], None, _Costs([]))}
    assert choose(evidence, TIME, 0.05) is None


def test_a_figure_may_be_0() -> None:
    """As pauses or drops are on the best fabric."""
    standings = standings_of({"a": rows([0.0] * 5), "b": rows([0.0, 0.0, 0.0, 0.0, 3.0])}, TIME)
    a, b = standings["a"], standings["b"]
    assert a.behind is not None
    assert b.behind is not None
    assert a.behind.mean == 0
    assert b.behind.mean == pytest.approx(0.2)
    assert a.is_near(0.0)


def decided(choice: Choice, evidence: dict[str, Evidence], margin: float) -> Any:
    """A decision, as far as sentences look at it."""
    request = SimpleNamespace(margin=margin)
    figures = SimpleNamespace(deciding=TIME, others=[])
    setup = SimpleNamespace(request=request)
    return SimpleNamespace(choice=choice, evidence=evidence, setup=setup, figures=figures)


def near_of(margin: float, **given: Any) -> list[str]:
    choice, evidence = chosen_from(margin, **given)
    return list(_among_the_near(decided(choice, evidence, margin), choice))


def turns_of(margin: float, **given: Any) -> list[str]:
    choice, evidence = chosen_from(margin, **given)
    made = decided(choice, evidence, margin)
    return [*_by_margin(made, choice), *_by_price(made, choice)]


def test_each_near_fabric_is_set_apart_by_what_differs_first() -> None:
    found = near_of(0.05, a=(FAST, 10, 100, []), b=(ALIKE, 10, 100, []), c=(ALIKE, 19, 100, []))
    assert found == [
        "Within the margin of 5 %: a, b and c.",
        "a costs least: 10.00 EUR. c costs 19.00 EUR.",
        "Costs, rates and changes do not set a apart from b, so the figure decides.",
    ]


def test_a_fabric_beyond_the_margin_may_be_near_by_chance_alone() -> None:
    noisy = [60.0, 140.0, 75.0, 160.0, 120.0]
    first, *_ = near_of(0.05, a=(noisy, 1, 100, []), b=(FAST, 9, 100, []))
    assert first == (
        "Within the margin of 5 %: b. The seeds show no difference from the best, so near as well: "
        "a."
    )


def test_prices_that_turn_it_are_those_of_every_near_fabric() -> None:
    found = turns_of(0.05, a=(FAST, 10, 100, []), b=(ALIKE, 10, 100, []), c=(ALIKE, 10.1, 100, []))
    assert found == [
        "As expensive as a: b. The first that cost less would be recommended.",
        "If the price of c were lower by more than 0.10 EUR (1.0 % of it), it would be c.",
    ]


def test_margins_that_turn_it_need_no_prices() -> None:
    (found,) = turns_of(0.05, roce_tuned=(FAST, None, 100, []), b=([106.0] * 5, None, 100, []))
    assert found == ("With a margin of 6.0 % it would be b, which needs no search of settings.")
