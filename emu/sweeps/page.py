"""The page of a sweep, and the tables that the terminal shows, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from emu.measure.bootstrap import FEWEST, method_in_words
from emu.models import MODELS
from emu.report.palette import COLOURS
from emu.report.run_figures import unit_of, written
from emu.report.seeds import interval_cell
from emu.report.table import Cell, Column, Table, Tone
from emu.report.templating import environment
from emu.sweeps.axes import in_words, label_of
from emu.sweeps.charts import Swept, charts, front_points
from emu.sweeps.plan import Plan
from emu.sweeps.results import front_pair
from emu.sweeps.statistics import intervals, means, places
from emu.sweeps.units import KeyColumn
from emu.words import counted, listed

MOST_ROWS = 100
"""The most rows of a table on the page."""
_MOST_VALUES = 6


@dataclass(frozen=True)
class View:
    """What the page and the terminal show of a sweep."""

    made: Plan
    rows: pd.DataFrame
    """A row for each run that is over."""
    columns: Sequence[str]
    """The figures to show."""
    are_wanted: bool
    """Whether the user named them."""
    computed: int
    """The number of runs that were done now; the others were in the folder."""

    @property
    def good(self) -> pd.DataFrame:
        return self.rows[self.rows["error"] == ""]

    @property
    def failed(self) -> pd.DataFrame:
        return self.rows[self.rows["error"] != ""]

    @property
    def swept(self) -> Swept:
        good = self.good
        return Swept(good, [k for k in self.made.columns if good[k.name].nunique() > 1])

    @property
    def by(self) -> list[str]:
        """The columns that tell points apart."""
        named = ["variant"] if self.made.has_variants else []
        return named + [column.name for column in self.made.columns]


def sentences(view: View) -> Iterator[str]:
    """What was done, for the head of the page and for the terminal."""
    made, seeds = view.made, sorted({run.seed for run in view.made.runs})
    yield (
        f"{counted(len(made.runs), 'run')}: {counted(len({r.point for r in made.runs}), 'point')}, "
        f"{counted(len(seeds), 'seed')}. {view.computed:,} computed now, "
        f"{len(view.rows) - view.computed:,} read from the folder, {len(view.failed):,} failed."
    )
    missing = len(made.runs) - len(view.rows)
    if missing:
        yield f"{counted(missing, 'run')} not done: the sweep was stopped. Start it again to go on."
    if len(seeds) > 1:
        few = f" With fewer than {FEWEST} seeds it is only a hint." if len(seeds) < FEWEST else ""
        yield f"Intervals over seeds: {method_in_words()}.{few}"


def varied(view: View) -> Iterator[str]:
    """What was varied, a sentence for each key."""
    if view.made.has_variants:
        yield f"variant: {listed([*view.made.bases])}"
    for column in view.made.columns:
        yield f"{column.key}: {_values(column, view.rows[column.name])}"


def _values(column: KeyColumn, cells: pd.Series) -> str:
    values = list(dict.fromkeys(cells.dropna().tolist()))
    if len(values) > _MOST_VALUES and column.is_number:
        ends = (in_words(column, end) for end in (min(values), max(values)))
        return f"{len(values)} values from {' to '.join(ends)}"
    return listed([in_words(column, value) for value in values], _MOST_VALUES)


def means_table(view: View, most: int) -> Table:
    """The means of the figures at each point, with their intervals."""
    found = [intervals(view.good, column, view.by) for column in view.columns]
    points = list(dict.fromkeys(places(view.good, view.by)))
    keys = {column.name: column for column in view.made.columns}
    rows = []
    for place in points[:most]:
        cells = [
            Cell(in_words(keys[name], value) if name in keys else str(value))
            for name, value in zip(view.by, place, strict=True)
        ]
        for column, own in zip(view.columns, found, strict=True):
            cells.append(interval_cell(own.get(place), unit_of(column)))
        rows.append(tuple(cells))
    heads = [Column(keys[name].key if name in keys else name, numeric=False) for name in view.by]
    return Table(
        title="Means over seeds, with their intervals" if _has_seeds(view) else "Results",
        columns=(*heads, *(Column(label_of(column)) for column in view.columns)),
        rows=tuple(rows),
        note=f"Of {len(points):,} points the first {most} are shown; runs.parquet has all."
        if len(points) > most
        else "",
    )


def _has_seeds(view: View) -> bool:
    return len({run.seed for run in view.made.runs}) > 1


def failed_table(view: View, most: int) -> Table:
    """The runs that failed, and why."""
    keys = {column.name: column for column in view.made.columns}
    shown = view.failed.head(most)
    rows = [
        (
            *(
                Cell(in_words(keys[name], value) if name in keys else str(value))
                for name, value in zip(view.by, place, strict=True)
            ),
            Cell(str(seed)),
            Cell(str(error), Tone.BAD),
        )
        for place, seed, error in zip(
            places(shown, view.by), shown["seed"], shown["error"], strict=True
        )
    ]
    heads = [keys[name].key if name in keys else name for name in view.by]
    return Table(
        title="Failed runs",
        columns=tuple(Column(name, numeric=False) for name in (*heads, "seed", "error")),
        rows=tuple(rows),
        note=f"Of {len(view.failed):,} failed runs the first {most} are shown."
        if len(view.failed) > most
        else "",
    )


def page(view: View) -> str:
    """The page, one HTML file that needs no network."""
    pair, drawn, best = None, [], None
    if len(view.good):
        swept = view.swept
        averages = means(view.good, view.columns, ["point"])
        pair = front_pair(averages, view.columns, wanted=view.are_wanted)
        drawn = list(charts(swept, view.columns, pair))
        if pair is not None and swept.runs["point"].nunique() > 2:
            best = _front_table(view, swept, pair)
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            title=view.made.name,
            failed_count=len(view.failed),
            runs_count=len(view.rows),
            sentences=list(sentences(view)),
            varied=list(varied(view)),
            model=MODELS[view.made.model].how,
            table_of_means=means_table(view, MOST_ROWS),
            failed=failed_table(view, MOST_ROWS),
            front=best,
            charts=drawn,
            colours=COLOURS,
        )
    )


def _front_table(view: View, swept: Swept, pair: tuple[str, str]) -> Table:
    """The points of the Pareto front."""
    points = front_points(swept, *pair)
    best = points[points["front"]].sort_values(pair[0])
    keys = {column.name: column for column in view.made.columns}
    names = [*swept.words, *(key.name for key in swept.numbers)]
    rows = [
        (
            *(
                Cell(in_words(keys[name], value) if name in keys else str(value))
                for name, value in zip(names, place, strict=True)
            ),
            *(Cell(written(own[name], unit_of(name))) for name in pair),
        )
        for place, own in zip(places(best, names), best[list(pair)].to_dict("records"), strict=True)
    ]
    heads = [Column(keys[name].key if name in keys else name, numeric=False) for name in names]
    return Table(
        title="The Pareto front",
        columns=(*heads, *(Column(label_of(name)) for name in pair)),
        rows=tuple(rows[:MOST_ROWS]),
    )
