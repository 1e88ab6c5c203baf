"""The rules by which a fabric is recommended.

1. A candidate must fit: all runs end, all flows finish, and no check of the spec fails.
2. Of those, the fastest sets the mark. All that are as fast within the margin are near.
3. Of those that are near, the first criterion in which they differ decides:

       cost            price with energy, if the user gave prices
       link rate       the slower links
       failures        fewer failed links and switches that leave flows unfinished
       search          no search of settings
       tuning effort   fewer changes that cost more than 5 %, of those that all fabrics have
       the figure      the faster
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from emu.decisions.candidates import Candidate
from emu.decisions.names import TUNED
from emu.decisions.prices import Bill
from emu.decisions.standing import Standing, fastest
from emu.sensitivities.costs import Cost
from emu.sensitivities.effect import Rows
from emu.sensitivities.measure import Result
from emu.tuning.goals import Goal

LOST_PARTS = ("link down", "link fails", "switch fails")
"""Failures that every fabric can have."""


@dataclass(frozen=True)
class Evidence:
    """All that was found out about a candidate."""

    candidate: Candidate
    standing: Standing
    bill: Bill | None
    result: Result
    """Its changes, with what each costs."""
    shared: Collection[str] = ()
    """Names of the changes that all candidates have."""

    @property
    def name(self) -> str:
        return self.candidate.name

    def cost_of(self, change: str) -> Cost | None:
        """What a change costs; None if it was not measured."""
        return next((own for own in self.result.costs if own.change.name == change), None)

    def rows_with(self, change: str) -> Rows:
        """The runs with a change; empty if it was not measured."""
        for number, own in enumerate(self.result.side.changes.made):
            if own.name == change:
                return self.result.side.after.get(number, {})
        return {}

    @property
    def costly_shared(self) -> int:
        """Changes that all candidates have, and that cost more than 5 % here."""
        return sum(cost.is_costly for cost in self.result.costs if cost.change.name in self.shared)

    @property
    def stuck_failures(self) -> int:
        """Failed links and switches with which flows do not finish."""
        return sum(cost.stuck > 0 for name in LOST_PARTS if (cost := self.cost_of(name)))


@dataclass(frozen=True)
class Criterion:
    """What decides between candidates that are equally fast."""

    name: str
    value: Callable[[Evidence], float]
    """The smaller, the better."""


PRICE = Criterion("cost", lambda own: 0.0 if own.bill is None else own.bill.total)
RATE = Criterion("link rate", lambda own: own.candidate.rate_bps)
STUCK = Criterion("failures", lambda own: own.stuck_failures)
SEARCH = Criterion("search", lambda own: own.candidate.fabric == TUNED)
EFFORT = Criterion("tuning effort", lambda own: own.costly_shared)
CRITERIA: Sequence[Criterion] = (PRICE, RATE, STUCK, SEARCH, EFFORT)


@dataclass(frozen=True)
class Choice:
    """A recommendation."""

    best: Evidence
    fastest: Evidence
    near: Sequence[Evidence]
    """All that are as fast as the fastest within the margin, the recommended one first."""
    criterion: Criterion | None
    """That decided against the second of them; None: there is none, or it is the slower one."""


def choose(evidence: Mapping[str, Evidence], goal: Goal, margin: float) -> Choice | None:
    """The recommendation; None if no candidate fits."""
    mark = fastest({name: own.standing for name, own in evidence.items()}, goal)
    if mark is None:
        return None

    def order(own: Evidence) -> tuple[float, ...]:
        figure = own.standing.figure
        assert figure is not None, "it fits, so it has the figure"
        last = -figure.mean if goal.maximise else figure.mean
        return (*(criterion.value(own) for criterion in CRITERIA), last)

    near = sorted((own for own in evidence.values() if own.standing.is_near(margin)), key=order)
    criterion = apart(near[0], near[1]) if len(near) > 1 else None
    return Choice(near[0], evidence[mark.name], near, criterion)


def apart(one: Evidence, other: Evidence) -> Criterion | None:
    """The first criterion in which two candidates differ; None: there is none."""
    return next((each for each in CRITERIA if each.value(one) != each.value(other)), None)
