"""The figure that decides, and the other figures that are shown beside it.

--by FIGURE    the user's; a rate is good if it is large, everything else if it is small
none           the iteration time of training steps and collectives, else the first figure that
               `emu sensitivity` compares: p99 of slowdowns, of latencies, then completions
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from emu.errors import UsageError
from emu.report.run_figures import more_is_better
from emu.sensitivities.figures import goals_of
from emu.spec.scenario import Spec
from emu.sweeps.axes import label_of
from emu.sweeps.statistics import OF_THE_RUN
from emu.tuning.goals import Figure, Goal, figure_of
from emu.words import listed

_MOST_NAMED = 6
_ITERATIONS = (".step_ns", ".iteration_ns")


@dataclass(frozen=True)
class Figures:
    """What the candidates are compared in."""

    deciding: Goal
    others: Sequence[Goal]


_ETHERNET = ("pause_frames", "paused_ns", "ce_marked")
_INFINIBAND = ("credit_wait_ns",)
"""Counts that the other kind of fabric does not have."""


def figures_of(
    spec: Spec, row: dict[str, Any], by: str | None, option: str, kinds: Collection[bool]
) -> Figures:
    """The figures, from the row of a run. `kinds`: whether fabrics that are compared are Ethernet.

    Raises UsageError for a name that is no figure, or one that a kind of fabric does not have.
    """
    goals = goals_of(spec, [row])
    if by is not None:
        known = [name for name in row if name not in OF_THE_RUN]
        found = _figure(by, known, option, [goal.figure.columns[0] for goal in goals])
        _refuse_one_sided(found, option, kinds)
        name = label_of(found.columns[0]) if len(found.columns) == 1 else found.name
        figure = Figure(name, found.columns)
        deciding = Goal(figure, maximise=more_is_better(figure.columns[0]))
    else:
        iterations = (goal for goal in goals if goal.figure.columns[0].endswith(_ITERATIONS))
        deciding = next(iterations, goals[0])
    columns = deciding.figure.columns
    return Figures(deciding, [goal for goal in goals if goal.figure.columns != columns])


def _figure(by: str, known: Sequence[str], option: str, usual: Sequence[str]) -> Figure:
    try:
        return figure_of(by, known, option)
    except UsageError as mistake:
        raise UsageError(f"{mistake}; the usual ones are {listed(usual, _MOST_NAMED)}") from None


def _refuse_one_sided(figure: Figure, option: str, kinds: Collection[bool]) -> None:
    column = figure.columns[0]
    for owners, is_ethernet, other in (
        (_ETHERNET, True, "InfiniBand"),
        (_INFINIBAND, False, "Ethernet"),
    ):
        if column in owners and (not is_ethernet) in kinds:
            raise UsageError(
                f"{option} {figure.name}: {other} has no such count, so this figure cannot decide "
                "between the two; name another, or fabrics of one kind"
            )
