"""A search from its setup to its files: what `emu tune` and `emu.tune` both do.

    probe       one run of the spec: which figures there are
    search      trials until there are as many as wanted, and the rivals with the same seeds
    judgement   the winner and its rivals on held-out seeds and loads

Each run is kept in the folder by its key, so all of it goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import optuna

from emu.errors import EmuError, FabricError
from emu.output_dir import refuse_unwritable, write_text, writing_into
from emu.report.summary import to_json
from emu.runtime.runner import ignore
from emu.sweeps.cluster import cores
from emu.sweeps.evaluate import Evaluator
from emu.sweeps.statistics import OF_THE_RUN
from emu.sweeps.store import Store
from emu.tuning.goals import Constraint, Goal, resolved
from emu.tuning.held_out import HeldOut, Rows, run_held_out, run_rivals
from emu.tuning.judge import Judgement, judge, means_of_feasible
from emu.tuning.page import page
from emu.tuning.progress import TuneLine
from emu.tuning.request import Setup
from emu.tuning.search import Search
from emu.tuning.study import JOURNAL, open_study
from emu.tuning.to_document import document
from emu.tuning.trials import Trial, ended_trials, front, winner
from emu.tuning.vendor import VendorText, vendor_texts

DOCUMENT_FILE = "tune.json"
PAGE_FILE = "tune.html"


@dataclass(frozen=True)
class Tuned:
    """A search that is over, or was stopped."""

    setup: Setup
    study: optuna.Study
    goals: Sequence[Goal]
    constraints: Sequence[Constraint]
    trials: Sequence[Trial]
    rivals: Mapping[str, Rows]
    """The rivals with the seeds of the search; empty if it was stopped before."""
    winner: Trial | None
    """None: no trial kept every constraint, or the search was stopped."""
    held_out: HeldOut | None
    """None if there is no winner, or if the search was stopped before."""
    judgement: Judgement | None
    computed: int
    """The runs that were done now; the others were in the folder."""
    stop: KeyboardInterrupt | FabricError | None

    @property
    def is_accepted(self) -> bool:
        return self.judgement is not None and self.judgement.is_accepted

    @property
    def front(self) -> list[Trial]:
        """The feasible trials that no other one beats."""
        return front(self.trials, self.goals)


@dataclass(frozen=True)
class Finished:
    """What a search gives back: what to show of it, and its files."""

    tuned: Tuned
    files: Mapping[str, Path]
    """What a file has -> its path."""


def run_tune(
    setup: Setup,
    folder: Path,
    *,
    stream: TextIO | None,
    on_note: Callable[[str], None] = ignore,
) -> Finished:
    """Searches, judges, and writes all files. `stream`: where progress goes.

    Raises UsageError for a folder that cannot be written, for a figure that there is not, and for
    ranges without valid specs; EmuError if the spec itself fails, or trial after trial.
    """
    refuse_unwritable(folder)
    request = setup.request
    with (
        writing_into(folder),
        Evaluator(
            setup.basis,
            Store(folder),
            workers=request.workers or cores(),
            scheduler=request.scheduler,
            on_note=on_note,
        ) as evaluator,
    ):
        goals, constraints = resolved(request.wishes, request.bounds, _figures(setup, evaluator))
        study = open_study(setup, goals, constraints, folder)
        tuned = _tuned(setup, study, goals, constraints, evaluator, stream)
    return _written(tuned, folder)


def _figures(setup: Setup, evaluator: Evaluator) -> list[str]:
    """The columns of figures of the spec as it is. Raises EmuError if its run fails."""
    run = setup.basis.run(0, {}, setup.seeds[0])
    evaluator.submit(run)
    ended = evaluator.ended()
    while not ended:
        ended = evaluator.ended()
    ((_, row),) = ended
    if row["error"]:
        raise EmuError(f"the spec as it is fails: {row['error']}")
    varied = [column.name for column in setup.basis.columns]
    return [name for name in row if name not in (*OF_THE_RUN, *varied)]


def _tuned(
    setup: Setup,
    study: optuna.Study,
    goals: Sequence[Goal],
    constraints: Sequence[Constraint],
    evaluator: Evaluator,
    stream: TextIO | None,
) -> Tuned:
    stop: KeyboardInterrupt | FabricError | None = None
    best: Trial | None = None
    held_out: HeldOut | None = None
    rivals: dict[str, Rows] = {}
    try:
        search = Search(setup, study, goals, constraints, evaluator)
        with TuneLine(setup.spec.name, setup.request.trials, goals, stream) as line:
            search.run(line.add)
        rivals = run_rivals(setup, evaluator)
        feasible = means_of_feasible(rivals.values(), goals, constraints)
        best = winner(ended_trials(study), goals, feasible)
        if best is not None:
            held_out = run_held_out(setup, best.settings, evaluator)
    except (KeyboardInterrupt, FabricError) as stopped:
        stop = stopped
    judged = held_out and judge(held_out, goals, constraints, len(setup.held_out_seeds))
    return Tuned(
        setup=setup,
        study=study,
        goals=goals,
        constraints=constraints,
        trials=ended_trials(study),
        rivals=rivals,
        winner=best,
        held_out=held_out,
        judgement=judged or None,
        computed=evaluator.computed,
        stop=stop,
    )


def _written(tuned: Tuned, folder: Path) -> Finished:
    if not tuned.trials:
        raise tuned.stop or EmuError("the search has no trials")
    files = {"page": folder / PAGE_FILE, "summary": folder / DOCUMENT_FILE}
    texts = [] if tuned.winner is None else _vendor_texts(tuned)
    for own in texts:
        if own.text:
            files[own.system] = folder / own.file
            write_text(folder / own.file, own.text)
    write_text(files["summary"], to_json(document(tuned)))
    write_text(files["page"], page(tuned, texts))
    return Finished(tuned, {**files, "study": folder / JOURNAL})


def _vendor_texts(tuned: Tuned) -> list[VendorText]:
    assert tuned.winner is not None
    return vendor_texts(tuned.setup.spec, tuned.setup.parameters, tuned.winner.settings)
