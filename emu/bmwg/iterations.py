"""Figures over the iterations of a benchmark: mean, interval, coefficient of variation.

An iteration is a trial with a seed of its own. The drafts want the number of iterations, and the
coefficient of variation of each figure; below 5 % is recommended.

    CV = standard deviation (of a sample, n - 1) / mean

Intervals of means are those of the whole project (`emu.measure.bootstrap`). Iterations that the
machine could not keep up with have no figures. A specification without randomness gives the same
figures with every seed, and a CV of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev

from emu.bmwg.catalogue import KPIS, measure
from emu.bmwg.kpi import Figure, Kpi, Undefined
from emu.bmwg.trial import Trial
from emu.errors import ExitCode
from emu.measure.bootstrap import Interval, interval_of
from emu.report.diagnosis import diagnoses
from emu.report.phrases import INCONCLUSIVE
from emu.report.run_view import RunFacts
from emu.report.verdict import exit_code, worst
from emu.words import counted

RECOMMENDED_CV = 0.05
"""A CV below this is recommended by the training draft."""
Place = tuple[str, str]
"""The KPI's key, and what the figure is of."""


@dataclass(frozen=True)
class Iteration:
    """What is kept of a trial. All that its runs recorded may be large."""

    seed: int
    duration_ns: int
    conclusive: bool
    figures: tuple[Figure, ...]
    undefined: tuple[Undefined, ...]
    anomalies: tuple[str, ...]
    exit_code: ExitCode

    @staticmethod
    def of(trial: Trial) -> Iteration:
        """Measures a trial; one that is inconclusive has no figures."""
        conclusive = all(run.conclusive for run in trial.runs)
        figures, undefined = measure(trial) if conclusive else ([], [])
        return Iteration(
            seed=trial.run.recording.seed,
            duration_ns=trial.window_ns[1] - trial.window_ns[0],
            conclusive=conclusive,
            figures=tuple(figures),
            undefined=tuple(undefined),
            anomalies=tuple(_anomalies(trial)),
            exit_code=worst(
                [
                    exit_code([trial.run.summary], trial.run.checks),
                    exit_code([run.summary for run in trial.runs], []),
                ]
            ),
        )


def _anomalies(trial: Trial) -> list[str]:
    """What went wrong in the trial's runs, in sentences. `diagnoses` find the causes."""
    named = {"": trial.run, "without the lost links: ": trial.without_faults}
    named |= {f"{name} alone: ": run for name, run in trial.alone.items()}
    return [
        f"{which}{sentence}"
        for which, run in named.items()
        if run is not None
        for sentence in _of_run(run)
    ]


def _of_run(run: RunFacts) -> list[str]:
    found = [] if run.conclusive else [INCONCLUSIVE]
    found += [diagnosis.in_short() for diagnosis in diagnoses(run)]
    if run.unfinished:
        found.append(f"{counted(len(run.unfinished), 'flow')} did not finish")
    found += [f"check failed: {own.check}" for own in run.checks if own.passed is False]
    return found


@dataclass(frozen=True)
class Statistic:
    """A figure over the iterations that have it."""

    kpi: Kpi
    of: str
    values: dict[int, float]
    """By seed."""
    detail: str
    """Of the first of them."""

    @cached_property
    def interval(self) -> Interval:
        """The mean, with its interval from two iterations on."""
        return interval_of([*self.values.values()])

    @property
    def cv(self) -> float | None:
        """The coefficient of variation; None for one iteration, and where the mean is 0 although
        the values differ."""
        return coefficient_of_variation([*self.values.values()])


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample / mean, as a part of 1; None for fewer than two values, and
    for values around 0."""
    if len(values) < 2:
        return None
    spread, mean = stdev(values), fmean(values)
    if not spread:
        return 0.0
    return spread / abs(mean) if mean else None


@dataclass(frozen=True)
class Missing:
    """A KPI that some iterations do not define."""

    kpi: Kpi
    of: str
    reason: str
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Bench:
    """A whole benchmark."""

    first: Trial
    """The first iteration, with all that it recorded, for pictures and settings."""
    iterations: tuple[Iteration, ...]

    @property
    def name(self) -> str:
        return self.first.run.spec.name

    @property
    def conclusive(self) -> tuple[Iteration, ...]:
        """The iterations that have figures."""
        return tuple(one for one in self.iterations if one.conclusive)

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all iterations."""
        return worst(one.exit_code for one in self.iterations)

    @cached_property
    def statistics(self) -> list[Statistic]:
        """Every figure that an iteration has, in the order of the catalogue."""
        found: dict[Place, list[tuple[int, Figure]]] = {}
        for one in self.conclusive:
            for figure in one.figures:
                found.setdefault(figure.place, []).append((one.seed, figure))
        return [self._statistic(own) for own in _in_order(found)]

    def _statistic(self, own: list[tuple[int, Figure]]) -> Statistic:
        _, first = own[0]
        values = {seed: figure.value for seed, figure in own}
        if first.kpi.leaves_out_zeros and first.of:
            whole = (first.kpi.key, "")
            values = {
                one.seed: values.get(one.seed, 0.0)
                for one in self.conclusive
                if one.seed in values or any(figure.place == whole for figure in one.figures)
            }
        return Statistic(first.kpi, first.of, values, first.detail)

    @cached_property
    def missing(self) -> list[Missing]:
        """Every KPI that an iteration does not define, with the reason."""
        seeds: dict[Undefined, list[int]] = {}
        for one in self.conclusive:
            for undefined in one.undefined:
                seeds.setdefault(undefined, []).append(one.seed)
        return [Missing(u.kpi, u.of, u.reason, tuple(own)) for u, own in seeds.items()]


def _in_order(
    found: dict[Place, list[tuple[int, Figure]]],
) -> list[list[tuple[int, Figure]]]:
    """By KPI in the order of the catalogue, as an iteration may add places to an earlier KPI."""
    rank = {key: place for place, key in enumerate(KPIS)}
    return [found[place] for place in sorted(found, key=lambda place: rank[place[0]])]
