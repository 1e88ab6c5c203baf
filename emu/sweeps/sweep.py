"""A sweep from its plan to its files: what `emu sweep` and `emu.sweep` both do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from emu.errors import EmuError, FabricError
from emu.output_dir import refuse_unwritable, write_text, writing_into
from emu.report.summary import to_json
from emu.runtime.runner import ignore
from emu.sweeps.cluster import cluster, cores
from emu.sweeps.execute import execute
from emu.sweeps.page import View, page
from emu.sweeps.plan import Plan
from emu.sweeps.progress import SweepLine
from emu.sweeps.results import shown
from emu.sweeps.store import Row, Store, as_frame
from emu.sweeps.to_document import document

PAGE_FILE = "sweep.html"
DOCUMENT_FILE = "sweep.json"


@dataclass(frozen=True)
class Finished:
    """A sweep that is over, or was stopped: what to show of it, and its files."""

    view: View
    files: Mapping[str, Path]
    """What a file has -> its path."""
    stop: KeyboardInterrupt | FabricError | None
    """What stopped it; None: all runs are over."""


def run_sweep(
    made: Plan,
    folder: Path,
    *,
    workers: int | None,
    scheduler: str | None,
    results: Sequence[str],
    stream: TextIO | None,
    on_note: Callable[[str], None] = ignore,
) -> Finished:
    """Does the runs of a plan that are not in the folder yet, and writes all files.

    `workers`: processes on this machine, as many as it has cores unless given. `scheduler`: the
    address of a Dask cluster instead. `results`: the figures to show; chosen unless given.
    `stream`: where progress goes. A sweep that is stopped keeps its finished runs.

    Raises UsageError for a folder that cannot be written; and for a figure that there is not, when
    the runs are over and written.
    """
    refuse_unwritable(folder)
    store = Store(folder)
    rows = store.finished(made)
    kept = len(rows)
    stop: KeyboardInterrupt | FabricError | None = None
    with writing_into(folder):
        try:
            _do(made, store, rows, workers or cores(), scheduler, stream, on_note)
        except (KeyboardInterrupt, FabricError) as stopped:
            stop = stopped
        return _written(made, store, rows, len(rows) - kept, results, stop)


def _do(
    made: Plan,
    store: Store,
    rows: dict[str, Row],
    workers: int,
    scheduler: str | None,
    stream: TextIO | None,
    on_note: Callable[[str], None],
) -> None:
    """Does the runs that have no row yet, and adds their rows."""
    left = [run for run in made.runs if run.key not in rows]
    if not left:
        return
    with (
        cluster(scheduler, min(workers, len(left)), on_note) as used,
        SweepLine(made.name, len(made.runs), len(rows), stream) as line,
    ):
        for run, outcome in execute(used, made, left):
            rows[run.key] = store.add(made, run, outcome)
            line.add(failed=bool(outcome.error))


def _written(
    made: Plan,
    store: Store,
    rows: Mapping[str, Row],
    computed: int,
    results: Sequence[str],
    stop: KeyboardInterrupt | FabricError | None,
) -> Finished:
    ordered = [rows[run.key] for run in made.runs if run.key in rows]
    if not ordered:
        raise stop or EmuError("the sweep has no runs")
    files = store.merge(ordered, made.tables)
    frame = as_frame(ordered)
    columns = shown(frame, [column.name for column in made.columns], results)
    view = View(made, frame, columns, bool(results), computed)
    files |= {"page": store.folder / PAGE_FILE, "summary": store.folder / DOCUMENT_FILE}
    write_text(files["summary"], to_json(document(view)))
    write_text(files["page"], page(view))
    return Finished(view, files, stop)
