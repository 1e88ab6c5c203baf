"""Variants over several seeds: intervals of each figure, and differences that are not chance.

Each variant runs with the same seeds. A difference between two variants is taken seed by seed, so
that what the seed does to both of them cancels out. It is called a difference only if its interval
(`emu.measure.bootstrap`) excludes 0. Runs that the machine could not keep up with are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from emu.measure.bootstrap import FEWEST, Interval, interval_of, method_in_words
from emu.measure.interval_entries import difference_entry, intervals_entry, runs_entry
from emu.report.run_figures import RunFigure, run_figures, written
from emu.report.run_view import RunFacts
from emu.report.seeds_entries import OverSeedsEntry
from emu.report.table import NOT_APPLICABLE, Cell, Column, Table, Tone
from emu.report.verdict import CheckResult

NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True)
class SeedRun:
    """What is kept of a variant's run with one seed. All that a run recorded may be large."""

    figures: tuple[RunFigure, ...]
    """Empty of a run that is no result."""
    checks: tuple[CheckResult, ...]

    @staticmethod
    def of(run: RunFacts) -> SeedRun:
        return SeedRun(tuple(run_figures(run)) if run.conclusive else (), run.checks)


@dataclass(frozen=True)
class Variant:
    """A variant's runs, by seed. Seeds whose run was stopped are missing."""

    name: str
    runs: Mapping[int, SeedRun]

    @cached_property
    def figures(self) -> dict[str, dict[int, RunFigure]]:
        """Name of a figure -> the figure by seed."""
        found: dict[str, dict[int, RunFigure]] = {}
        for seed, run in self.runs.items():
            for figure in run.figures:
                found.setdefault(figure.name, {})[seed] = figure
        return found

    def by_seed(self, name: str) -> dict[int, float]:
        """The known values of a figure."""
        own = self.figures.get(name, {})
        return {seed: figure.value for seed, figure in own.items() if figure.value is not None}

    def interval(self, name: str) -> Interval | None:
        """The mean of a figure over the seeds; None if no run has it."""
        values = list(self.by_seed(name).values())
        return interval_of(values) if values else None


@dataclass(frozen=True)
class OverSeeds:
    """All variants, over the same seeds."""

    variants: Sequence[Variant]
    seeds: Sequence[int]

    @cached_property
    def figures(self) -> dict[str, str]:
        """Name -> unit of the figures that are not 0 or unknown everywhere."""
        return {
            name: next(iter(own.values())).unit
            for variant in self.variants
            for name, own in variant.figures.items()
            if any(any(one.by_seed(name).values()) for one in self.variants)
        }

    def difference(self, one: Variant, other: Variant, name: str) -> Interval | None:
        """How much higher a figure of `other` is than that of `one`, seed by seed; None if no seed
        has both."""
        first, second = one.by_seed(name), other.by_seed(name)
        pairs = [second[seed] - first[seed] for seed in first if seed in second]
        return interval_of(pairs) if pairs else None


def seeds_tables(over: OverSeeds) -> Iterator[Table]:
    """The intervals, the differences from the first variant, and the checks."""
    yield _intervals_table(over)
    if len(over.variants) > 1:
        yield _differences_table(over)
    yield _checks_table(over)


def seeds_document(over: OverSeeds) -> OverSeedsEntry:
    """The same as data for programs, with the differences of all pairs."""
    return {
        "seeds": list(over.seeds),
        **intervals_entry(),
        "variants": {
            variant.name: {
                name: {**runs_entry(found), "unit": unit}
                for name, unit in over.figures.items()
                if (found := variant.interval(name)) is not None
            }
            for variant in over.variants
        },
        "differences": [
            {
                "of": other.name,
                "from": one.name,
                "figure": name,
                "unit": unit,
                **difference_entry(found),
            }
            for one, other in combinations(over.variants, 2)
            for name, unit in over.figures.items()
            if (found := over.difference(one, other, name)) is not None
        ],
    }


def _intervals_table(over: OverSeeds) -> Table:
    return Table(
        title=f"Means over {len(over.seeds)} seeds, with their intervals",
        columns=(
            Column("figure", numeric=False),
            *(Column(variant.name) for variant in over.variants),
        ),
        rows=tuple(
            (
                Cell(name),
                *(interval_cell(variant.interval(name), unit) for variant in over.variants),
            )
            for name, unit in over.figures.items()
        ),
        note=f"Intervals: {method_in_words()}.",
    )


def interval_cell(found: Interval | None, unit: str) -> Cell:
    """`1.6 ms [1.56 ms, 1.65 ms]`; the mean alone where all values are equal, or there is one."""
    if found is None:
        return NOT_APPLICABLE
    mean = written(found.mean, unit)
    if found.low is None or found.high is None or found.low == found.high:
        return Cell(mean)
    return Cell(f"{mean} [{written(found.low, unit)}, {written(found.high, unit)}]")


def _differences_table(over: OverSeeds) -> Table:
    first, *others = over.variants
    few = f"; it takes {FEWEST} seeds" if len(over.seeds) < FEWEST else ""
    return Table(
        title=f"Differences from {first.name}, seed by seed",
        columns=(Column("figure", numeric=False), *(Column(other.name) for other in others)),
        rows=tuple(
            (
                Cell(name),
                *(_difference_cell(over.difference(first, other, name), unit) for other in others),
            )
            for name, unit in over.figures.items()
        ),
        note=f"A difference is shown if its interval excludes 0{few}.",
    )


def _difference_cell(found: Interval | None, unit: str) -> Cell:
    if found is None:
        return NOT_APPLICABLE
    if not found.excludes_zero:
        return Cell(NO_DIFFERENCE, Tone.FAINT)
    sign = "+" if found.mean > 0 else ""
    return Cell(sign + interval_cell(found, unit).text)


def _checks_table(over: OverSeeds) -> Table:
    """In how many seeds each check passed."""
    rows = []
    for variant in over.variants:
        results: dict[str, list[bool | None]] = {}
        for run in variant.runs.values():
            for result in run.checks:
                results.setdefault(result.check, []).append(result.passed)
        for check, passed in results.items():
            text = f"passed in {passed.count(True)} of {len(passed)}"
            tone = Tone.BAD if False in passed else Tone.GOOD if all(passed) else Tone.FAINT
            rows.append((Cell(variant.name), Cell(check), Cell(text, tone)))
    return Table(
        title="Checks over the seeds",
        columns=tuple(Column(name, numeric=False) for name in ("variant", "check", "seeds")),
        rows=tuple(rows),
    )
