"""The figure that decides, and the other figures that are shown beside it.

--by FIGURE    the user's; a rate is good if it is large, everything else if it is small
none           the iteration time of training steps and collectives, else the first figure that
               `emu sensitivity` compares: p99 of slowdowns, of latencies, then completions
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emu.report.run_figures import more_is_better
from emu.sensitivities.figures import goals_of
from emu.spec.scenario import Spec
from emu.sweeps.axes import label_of
from emu.sweeps.statistics import OF_THE_RUN
from emu.tuning.goals import Figure, Goal, figure_of

_ITERATIONS = (".step_ns", ".iteration_ns")


@dataclass(frozen=True)
class Figures:
    """What the candidates are compared in."""

    deciding: Goal
    others: Sequence[Goal]


def figures_of(spec: Spec, row: dict[str, Any], by: str | None, option: str) -> Figures:
    """The figures, from the row of a run. Raises UsageError for a name that is no figure."""
    goals = goals_of(spec, [row])
    if by is not None:
        known = [name for name in row if name not in OF_THE_RUN]
        found = figure_of(by, known, option)
        name = label_of(found.columns[0]) if len(found.columns) == 1 else found.name
        figure = Figure(name, found.columns)
        deciding = Goal(figure, maximise=more_is_better(figure.columns[0]))
    else:
        iterations = (goal for goal in goals if goal.figure.columns[0].endswith(_ITERATIONS))
        deciding = next(iterations, goals[0])
    columns = deciding.figure.columns
    return Figures(deciding, [goal for goal in goals if goal.figure.columns != columns])
