"""Means over seeds, with their intervals (`emu.measure.bootstrap`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from emu.measure.bootstrap import Interval, interval_of

OF_THE_RUN = ("key", "point", "variant", "seed", "error", "wall_seconds")
"""Columns of the frame of runs that are neither varied keys nor figures."""
Place = tuple[object, ...]
"""Values of some columns; None where a point has none."""


def result_columns(runs: pd.DataFrame, varied: Sequence[str]) -> list[str]:
    """The columns of figures: all but those of the point and of the run as such."""
    return [str(name) for name in runs.columns if name not in (*OF_THE_RUN, *varied)]


def intervals(runs: pd.DataFrame, column: str, by: Sequence[str]) -> dict[Place, Interval]:
    """The mean of a column for each combination of values of `by`, in the order of the runs.

    Runs without the figure are left out, and combinations without any.
    """
    values: dict[Place, list[float]] = {}
    known = runs[runs[column].notna()]
    for place, value in zip(places(known, by), known[column], strict=True):
        values.setdefault(place, []).append(float(value))
    return {place: interval_of(own) for place, own in values.items()}


def places(runs: pd.DataFrame, by: Sequence[str]) -> list[Place]:
    """The values of these columns in each row."""
    if not by:
        return [()] * len(runs)
    rows = runs[list(by)].itertuples(index=False, name=None)
    return [tuple(None if pd.isna(value) else _plain(value) for value in row) for row in rows]


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def means(runs: pd.DataFrame, columns: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """A row for each combination of values of `by`. Each figure has its mean, and the ends of the
    interval in columns `_low` and `_high` (NaN for one value); `runs` is the number of runs."""
    found = {column: intervals(runs, column, by) for column in columns}
    counts = pd.Series(places(runs, by), dtype=object).value_counts(sort=False)
    rows = []
    for place, count in counts.items():
        assert isinstance(place, tuple)
        row = dict(zip(by, place, strict=True)) | {"runs": count}
        for column in columns:
            own = found[column].get(place)
            row[column] = own and own.mean
            row[f"{column}_low"] = own and own.low
            row[f"{column}_high"] = own and own.high
        rows.append(row)
    ends = [f"{column}{end}" for column in columns for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=[*by, "runs", *ends]).astype(dict.fromkeys(ends, float))
