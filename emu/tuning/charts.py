"""The pictures of a search: how it went, what mattered, the Pareto front, and slices.

    history       the mean of a goal by trial, and the best one so far
    importances   the share of each key in reaching the best trials
    front         trials by two goals, and those that no other one beats
    slice         trials by a key and a goal

Importances are those of PED-ANOVA (Watanabe et al., IJCAI 2023): how far the best trials' values of
a key stand apart from those of all trials. It needs no package beyond Optuna.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any

import optuna
from optuna.importance import PedAnovaImportanceEvaluator

from emu.report.charts.chart import INCH, Chart
from emu.report.figure import Axis, Figure
from emu.report.palette import BAD, FAINT, INK, Colour, Legend, series_colour
from emu.sweeps.axes import Scale, figure_axis, figure_scale, in_words, key_axis, key_scale
from emu.tuning.goals import Goal
from emu.tuning.judge import mean_of
from emu.tuning.parameters import Parameter
from emu.tuning.trials import COMPLETE, FAILED, PRUNED, VIOLATED, Trial, front

if TYPE_CHECKING:
    from emu.tuning.tune import Tuned

_WIDE = INCH * 12.6
_HALF = INCH * 6.0
_HEIGHT = INCH * 3.0
_LEAST_TRIALS = 10
"""For importances."""
_BEST = 5
"""Trials that are the best ones for importances, at least; else a tenth of all."""
_COLOURS: dict[str, tuple[str, Colour]] = {
    COMPLETE: ("measured with all seeds", series_colour(0)),
    PRUNED: ("pruned", FAINT),
    VIOLATED: ("violates a constraint", BAD),
}


def charts(tuned: Tuned) -> Iterator[Chart]:
    """All pictures, as far as there are trials for them."""
    for place, goal in enumerate(tuned.goals):
        yield _history(tuned, place, goal)
    yield from _importance_charts(tuned)
    for one, other in combinations(range(len(tuned.goals)), 2):
        yield from _front_chart(tuned, one, other)
    for place, goal in enumerate(tuned.goals):
        for parameter in tuned.setup.parameters:
            yield _slice(tuned, place, goal, parameter)


def _whole_numbers(last: int) -> list[tuple[float, str]]:
    """About ten marks from 0 to the last."""
    step = max(1, -(-last // 10))
    return [(float(number), f"{number:,}") for number in range(0, last + 1, step)]


def _measured(tuned: Tuned, place: int) -> list[Trial]:
    """The trials that have a finite mean of a goal; not those of which a run failed."""
    measured = [own for own in tuned.trials if own.means and own.how != FAILED]
    return [own for own in measured if isfinite(own.means[place])]


def _scale(goal: Goal, values: Sequence[float]) -> Scale:
    return replace(figure_scale(goal.figure.columns[0], values), name=goal.name)


def _rival_means(tuned: Tuned, goal: Goal) -> dict[str, float]:
    """Rival -> its mean of a goal over the seeds of the search."""
    found = {name: mean_of(goal, rows) for name, rows in tuned.rivals.items()}
    return {name: own.mean for name, own in found.items() if own is not None}


def _legend(trials: Sequence[Trial]) -> tuple[Legend, ...]:
    present = {own.how for own in trials}
    return tuple(Legend(*entry) for how, entry in _COLOURS.items() if how in present)


def _history(tuned: Tuned, place: int, goal: Goal) -> Chart:
    trials = _measured(tuned, place)
    values = [own.means[place] for own in trials] + list(_rival_means(tuned, goal).values())
    scale = _scale(goal, values)
    rivals: list[Legend] = []
    last = max((own.number for own in tuned.trials), default=1)
    figure = Figure(
        [""],
        _WIDE,
        _HEIGHT,
        Axis(-0.5, last + 0.5, "trial", labels=_whole_numbers(last)),
        figure_axis(scale, values or [0.0]),
    )
    (plot,) = figure.plots
    for own in trials:
        colour = _COLOURS[own.how][1]
        plot.dots([own.number], [scale.shown(own.means[place])], colour, radius=2.2)
    for number, (name, value) in enumerate(_rival_means(tuned, goal).items()):
        colour = series_colour(number + 1)
        plot.line([-0.5, last + 0.5], [scale.shown(value)] * 2, colour, dash="3 3")
        rivals.append(Legend(name, colour))
    xs, ys = _best_so_far(trials, place, goal)
    if xs:
        plot.step_line([*xs, last + 0.5], [scale.shown(y) for y in ys], INK)
    best = Legend("best so far", INK)
    return Chart(
        title=f"{goal.words.capitalize()}: trial by trial",
        svg=figure.svg(f"{scale.title} by trial"),
        legend=(*_legend(trials), best, *rivals),
        caption="A dot is the mean over the seeds of a trial; a trial that ended early has fewer. "
        "Dashed lines are the rivals' means over the same seeds. "
        "Trials whose settings are no valid spec are left out.",
        is_wide=True,
    )


def _best_so_far(trials: Sequence[Trial], place: int, goal: Goal) -> tuple[list[int], list[float]]:
    """The numbers of trials that were the best until then, and their means."""
    xs: list[int] = []
    ys: list[float] = []
    for own in trials:
        mean = own.means[place]
        if own.is_feasible and (not ys or goal.gain(mean, ys[-1]) > 0):
            xs.append(own.number)
            ys.append(mean)
    return xs, ys


def importances(tuned: Tuned, place: int) -> dict[str, float]:
    """Key -> its share in reaching the best trials of a goal, the largest first; empty if there are
    too few trials. Trials that ended early count with the seeds that they had."""
    goal, keys = tuned.goals[place], tuned.setup.parameters
    trials = _measured(tuned, place)
    if len(trials) < _LEAST_TRIALS or len({own.means[place] for own in trials}) < 2:
        return {}
    study = optuna.create_study(direction="maximize" if goal.maximise else "minimize")
    for own in trials:
        study.add_trial(
            optuna.create_trial(
                params=dict(own.drawn),
                distributions={each.key: each.distribution for each in keys},
                value=own.means[place],
            )
        )
    share = max(0.1, _BEST / len(trials))
    evaluator = PedAnovaImportanceEvaluator(target_quantile=share)
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))


def _importance_charts(tuned: Tuned) -> Iterator[Chart]:
    for place, goal in enumerate(tuned.goals):
        shares = importances(tuned, place)
        if not shares:
            continue
        labels = [(-float(n), key) for n, key in enumerate(shares)]
        figure = Figure(
            [""],
            _HALF,
            INCH * (0.7 + 0.3 * len(shares)),
            Axis(0, 100, "importance (%)"),
            Axis(0.5 - len(shares), 0.5, labels=labels, grid=False),
        )
        for number, share in enumerate(shares.values()):
            figure.plots[0].bar((0, 100 * share), -number, 0.6, series_colour(0))
        yield Chart(
            title=f"What mattered for {goal.name}",
            svg=figure.svg(f"importances for {goal.name}"),
            caption="How far the values of the best trials stand apart from those of all "
            "(PED-ANOVA). A key without importance may keep its default.",
        )


def _front_chart(tuned: Tuned, one: int, other: int) -> Iterator[Chart]:
    trials = [own for own in _measured(tuned, one) if isfinite(own.means[other])]
    if not trials:
        return
    goals = tuned.goals[one], tuned.goals[other]
    pairs = [(own.means[one], own.means[other]) for own in trials]
    rivals = _rival_pairs(tuned, *goals)
    shown = [*pairs, *rivals.values()]
    scales = [_scale(goal, [pair[n] for pair in shown]) for n, goal in enumerate(goals)]
    axes = [figure_axis(scale, [pair[n] for pair in shown]) for n, scale in enumerate(scales)]
    figure = Figure([""], _WIDE, _HEIGHT * 1.3, *axes)
    (plot,) = figure.plots
    for own, (x, y) in zip(trials, pairs, strict=True):
        colour = _COLOURS[own.how][1]
        plot.dots([scales[0].shown(x)], [scales[1].shown(y)], colour, radius=2.2)
    best = front(tuned.trials, tuned.goals)
    ends = sorted((own.means[one], own.means[other]) for own in best)
    corners = [(scales[0].shown(x), scales[1].shown(y)) for x, y in ends]
    plot.line([x for x, _ in corners], [y for _, y in corners], INK, dash="5 3")
    plot.dots([x for x, _ in corners], [y for _, y in corners], INK, radius=4)
    for name, (x, y) in rivals.items():
        plot.crosses([scales[0].shown(x)], scales[1].shown(y), BAD)
        plot.text(scales[0].shown(x), scales[1].shown(y), f"  {name}", INK)
    yield Chart(
        title=f"Pareto front: {goals[0].words} and {goals[1].words}",
        svg=figure.svg(f"Pareto front of {scales[0].title} and {scales[1].title}"),
        legend=(*_legend(trials), Legend("no other trial beats it (large dots)", INK)),
        caption="Crosses are the rivals, with the same seeds. No trial that keeps the constraints "
        "is better than one of the front in one goal and as good in all others.",
        is_wide=True,
    )


def _rival_pairs(tuned: Tuned, one: Goal, other: Goal) -> dict[str, tuple[float, float]]:
    xs, ys = _rival_means(tuned, one), _rival_means(tuned, other)
    return {name: (xs[name], ys[name]) for name in xs if name in ys}


def _slice(tuned: Tuned, place: int, goal: Goal, parameter: Parameter) -> Chart:
    trials = _measured(tuned, place)
    scale = _scale(goal, [own.means[place] for own in trials])
    cells = [parameter.column.cell(own.settings[parameter.key]) for own in trials]
    axis, at = _across(parameter, cells)
    values = [own.means[place] for own in trials] or [0.0]
    figure = Figure([""], _HALF, _HEIGHT, axis, figure_axis(scale, values))
    (plot,) = figure.plots
    for own, cell in zip(trials, cells, strict=True):
        mean = scale.shown(own.means[place])
        is_best = tuned.winner is not None and own.number == tuned.winner.number
        colour = INK if is_best else _COLOURS[own.how][1]
        plot.dots([at(cell)], [mean], colour, radius=4 if is_best else 2.2)
    title = f"{goal.name} over {parameter.key}"
    legend = (*_legend(trials), Legend("winner (large dot)", INK))
    return Chart(title=title, svg=figure.svg(title), legend=legend)


def _across(parameter: Parameter, cells: Sequence[Any]) -> tuple[Axis, Callable[[Any], float]]:
    """The axis of a key, and the place of a value on it."""
    if parameter.column.is_number:
        numbers = [float(cell) for cell in cells if isinstance(cell, int | float)] or [1.0]
        scale = key_scale(parameter.column, numbers)
        return key_axis(scale, numbers), scale.shown
    words = list(dict.fromkeys(in_words(parameter.column, cell) for cell in cells))
    labels = [(float(n), word) for n, word in enumerate(words)]
    axis = Axis(-0.5, len(words) - 0.5, parameter.key, labels=labels, grid=False)
    return axis, lambda cell: float(words.index(in_words(parameter.column, cell)))
