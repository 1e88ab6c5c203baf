"""A measurement from its setup to its files, for `emu sensitivity` and `emu.sensitivity`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TextIO

from emu.errors import FabricError
from emu.output_dir import make_folder, refuse_unwritable, write_text, writing_into
from emu.report.summary import to_json
from emu.runtime.runner import ignore
from emu.sensitivities.change import LeftOut
from emu.sensitivities.costs import Cost, cost_of
from emu.sensitivities.figures import counts_of, goals_of
from emu.sensitivities.page import page
from emu.sensitivities.request import Setup
from emu.sensitivities.runs import Side, run_bases, run_changes
from emu.sensitivities.to_document import document
from emu.sweeps.cluster import cores
from emu.sweeps.evaluate import Evaluator
from emu.sweeps.store import Store
from emu.tuning.goals import Goal

DOCUMENT_FILE = "sensitivity.json"
PAGE_FILE = "sensitivity.html"
Stop = KeyboardInterrupt | FabricError | None
"""What stopped a measurement; None: all runs are over."""


@dataclass(frozen=True)
class Result:
    """What came out of one side."""

    side: Side

    @cached_property
    def goals(self) -> list[Goal]:
        """The figures in which a change may cost something."""
        return goals_of(self.side.spec, list(self.side.before.values()))

    @cached_property
    def columns(self) -> list[str]:
        """The counts that are not 0 everywhere."""
        rows = [self.side.before, *self.side.after.values()]
        return counts_of([row for own in rows for row in own.values()])

    @cached_property
    def costs(self) -> list[Cost]:
        """All changes that have run, the most expensive first."""
        costs = [
            cost_of(change, self.side.before, self.side.after[number], self.goals, self.columns)
            for number, change in enumerate(self.side.changes.made)
            if number in self.side.after
        ]
        return sorted(costs, key=lambda cost: cost.order)

    @property
    def left_out(self) -> Sequence[LeftOut]:
        return self.side.changes.left_out

    @property
    def costly(self) -> list[Cost]:
        return [cost for cost in self.costs if cost.is_costly]

    @property
    def gains(self) -> list[Cost]:
        """The changes that make the fabric better, the best first."""
        return [cost for cost in reversed(self.costs) if cost.is_gain]


@dataclass(frozen=True)
class Measured:
    """A measurement that is over, or was stopped: its results, and its files."""

    setup: Setup
    results: Sequence[Result]
    computed: int
    """The runs that were done now; the others were in the folder."""
    stop: Stop
    files: Mapping[str, Path]
    """What a file has -> its path."""

    @property
    def missing(self) -> int:
        """Runs that are not done, because the measurement was stopped."""
        planned = sum(len(own.side.changes.made) for own in self.results) * len(self.setup.seeds)
        done = sum(len(rows) for own in self.results for rows in own.side.after.values())
        return planned - done

    @property
    def failed(self) -> int:
        """Runs that failed."""
        rows = [rows for own in self.results for rows in own.side.after.values()]
        return sum(bool(row["error"]) for own in rows for row in own.values())


def run_sensitivity(
    setup: Setup,
    folder: Path,
    *,
    pages: Path | None,
    stream: TextIO | None,
    on_note: Callable[[str], None] = ignore,
) -> Measured:
    """Runs all sides and changes, and writes all files. `pages`: where page and summary go; None:
    there are none. `stream`: where progress goes.

    Raises UsageError for a folder that cannot be written; EmuError if a side fails without any
    change; KeyboardInterrupt or FabricError if it is stopped before any change has run.
    """
    refuse_unwritable(folder)
    with writing_into(folder):
        sides, computed, stop = _run(setup, folder, stream, on_note)
        if stop is not None and not any(side.after for side in sides):
            raise stop
        results = [Result(side) for side in sides]
        if pages is None:
            return Measured(setup, results, computed, stop, {})
        make_folder(pages)
        files = {"page": pages / PAGE_FILE, "summary": pages / DOCUMENT_FILE}
        measured = Measured(setup, results, computed, stop, files)
        write_text(files["summary"], to_json(document(measured)))
        write_text(files["page"], page(measured))
    return measured


def _run(
    setup: Setup, folder: Path, stream: TextIO | None, on_note: Callable[[str], None]
) -> tuple[list[Side], int, Stop]:
    """The sides with all their rows, how many runs were done now, and what stopped them."""
    store, request = Store(folder), setup.request
    workers, stop = request.workers or cores(), None
    with Evaluator(
        setup.basis, store, workers=workers, scheduler=request.scheduler, on_note=on_note
    ) as evaluator:
        sides = run_bases(setup, store, evaluator, stream)
        try:
            run_changes(setup, sides, evaluator, stream)
        except (KeyboardInterrupt, FabricError) as stopped:
            stop = stopped
    return sides, evaluator.computed, stop
