"""The folder of a sweep.

    runs/KEY.parquet     the row of a run, written when it is over; so are flows/ and ports/
    runs.parquet         the rows of this sweep's runs; flows.parquet and ports.parquet likewise
    sweep.json           what was varied, and the units
    sweep.html           the page

A run that is in `runs/` without an error, with the tables that are asked for, is not done again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from emu.errors import EmuError
from emu.output_dir import make_folder, new_file
from emu.sweeps.plan import Basis, Plan, PlannedRun
from emu.sweeps.work import Outcome

if TYPE_CHECKING:
    import pandas as pd

RUNS = "runs"
_TEXTS = ("key", "variant", "error")
_FRACTIONS = ("wall_seconds",)
_FIGURES = b"emu.figures"
"""The key of a file's metadata that lists its columns of figures."""

Row = dict[str, Any]


class Store:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def finished(self, made: Plan) -> dict[str, Row]:
        """Key -> row of the runs of the plan that are there already, with this plan's columns."""
        rows = ((run.key, self.row(made, run)) for run in made.runs)
        return {key: row for key, row in rows if row is not None}

    def row(self, made: Basis, run: PlannedRun) -> Row | None:
        """The row of a run that is there already, with its tables; else None. Raises EmuError for a
        file that is no such row."""
        if self._has_tables(run.key, made.tables) and (figures := self._figures(run.key)):
            return row_of(made, run, figures)
        return None

    def add(self, made: Basis, run: PlannedRun, outcome: Outcome) -> Row:
        """Writes the result of a run, and returns its row. Raises OSError, EmuError.

        The row is written last, so that a run with a row is whole.
        """
        for name, frame in outcome.tables.items():
            table = pa.Table.from_pandas(frame.reset_index(), preserve_index=False)
            table = table.add_column(0, "key", pa.array([run.key] * len(table)))
            _write(self._path(name, run.key), table.replace_schema_metadata())
        figures = {"wall_seconds": outcome.wall_seconds, **outcome.figures}
        row = row_of(made, run, {"error": outcome.error, **figures})
        kept = json.dumps([] if outcome.error else [*figures])
        table = as_table([row]).replace_schema_metadata({_FIGURES: kept})
        _write(self._path(RUNS, run.key), table)
        return row

    def table(self, name: str, key: str) -> pd.DataFrame:
        """A further table of a run that is there. Raises OSError."""
        frame: pd.DataFrame = pq.ParquetFile(self._path(name, key)).read().to_pandas()
        return frame

    def merge(self, rows: Sequence[Row], tables: Iterable[str]) -> dict[str, Path]:
        """Writes one file for all runs of the sweep, and for each table. Returns their paths."""
        paths = {RUNS: self.folder / f"{RUNS}.parquet"}
        _write(paths[RUNS], as_table(rows))
        for name in tables:
            files = [self._path(name, row["key"]) for row in rows if not row["error"]]
            parts = [pq.read_table(path) for path in files]
            if parts:
                paths[name] = self.folder / f"{name}.parquet"
                _write(paths[name], pa.concat_tables(parts, promote_options="permissive"))
        return paths

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{key}.parquet"

    def _has_tables(self, key: str, tables: Iterable[str]) -> bool:
        return all(self._path(name, key).exists() for name in tables)

    def _figures(self, key: str) -> Row:
        """The figures of a run; empty if it is not there, or has failed."""
        path = self._path(RUNS, key)
        if not path.exists():
            return {}
        try:
            table = pq.ParquetFile(path).read(use_threads=False)
            names = json.loads(table.schema.metadata[_FIGURES])
            (row,) = table.select(names).to_pylist() if names else [{}]
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
            raise EmuError(f"{path}: is no row of a sweep ({error}); remove it") from None
        return dict(row)


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table with the union of their columns. Whole numbers stay whole where some are
    missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in names})


def as_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows as a pandas frame; whole numbers stay whole (pandas' Int64)."""
    import pandas as pd

    whole = {pa.int64(): pd.Int64Dtype()}
    frame: pd.DataFrame = as_table(rows).to_pandas(types_mapper=whole.get)
    return frame


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    known = [value for value in values if value is not None]
    if name in _TEXTS or any(isinstance(value, str) for value in known):
        return pa.array(values, pa.string())
    if name in _FRACTIONS or any(isinstance(value, float) for value in known):
        return pa.array(values, pa.float64())
    return pa.array(values, pa.int64())


def _write(path: Path, table: pa.Table) -> None:
    make_folder(path.parent)
    with new_file(path) as stream:
        pq.write_table(table, stream)


def row_of(made: Basis, run: PlannedRun, figures: Mapping[str, Any]) -> Row:
    """The row of a run: the point's columns, then the figures."""
    row: Row = {"key": run.key, "point": run.point}
    if made.has_variants:
        row["variant"] = run.variant
    for column in made.columns:
        given = column.key in run.settings
        row[column.name] = column.cell(run.settings[column.key]) if given else None
    return row | {"seed": run.seed, "error": "", "wall_seconds": None} | dict(figures)
