"""Figures, shares and costs in the words of a decision's sentences and tables."""

from __future__ import annotations

from emu.decisions.choice import Evidence
from emu.decisions.prices import Bill
from emu.measure.bootstrap import Interval
from emu.report.run_figures import written
from emu.sensitivities.costs import Cost
from emu.sensitivities.effect import Effect, percent
from emu.tuning.goals import Goal
from emu.words import counted


def figure(own: Interval | None, goal: Goal) -> str:
    """`1.29 ms [1.27 ms, 1.31 ms]`."""
    if own is None:
        return "unknown"
    unit = goal.figure.unit
    text = written(own.mean, unit)
    ends = [written(end, unit) for end in (own.low, own.high) if end is not None]
    return text if set(ends) <= {text} else f"{text} [{', '.join(ends)}]"


def in_currency(bill: Bill) -> str:
    energy = f" ({bill.money(bill.energy)} of it for energy)" if bill.energy else ""
    return f"{bill.money(bill.total)}{energy}"


def share(value: float) -> str:
    """`2.7 %`, without a sign."""
    return percent(abs(value)).removeprefix("+")


def named(goal: Goal) -> str:
    """`incast: last completion` -> `last completion of incast`."""
    entry, colon, what = goal.name.partition(": ")
    return f"{what} of {entry}" if colon else goal.name


def worse(goal: Goal) -> str:
    return "lower" if goal.maximise else "higher"


def gap(effect: Effect) -> str:
    """`2.7 % higher`, or `1,551 % higher with 3 of 5 seeds`."""
    return f"{share(effect.shown)} {worse(effect.goal)} {effect.seeds_in_words}".rstrip()


def damage(cost: Cost) -> str:
    """What a change does, in words."""
    if cost.stuck:
        return f"flows do not finish with {cost.stuck} of {counted(cost.seeds, 'seed')}"
    if cost.worst is None:
        return "no difference is shown"
    return f"{named(cost.worst.goal)} {cost.worst.words}"


def behind_of(own: Evidence) -> float:
    return own.standing.behind.mean if own.standing.behind is not None else 0.0
