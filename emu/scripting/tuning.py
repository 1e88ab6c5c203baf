"""Searches for scripts: settings that reach goals, and what a script learns from the search."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from emu.errors import UsageError
from emu.models import MODELS, PACKETS
from emu.scripting.spec import Settings, given, plain
from emu.spec.diagnostic import unknown_name
from emu.spec.scenario import Spec
from emu.streams import print_note

if TYPE_CHECKING:
    import pandas as pd

    from emu.sweeps.values import Span
    from emu.tuning.goals import Wish
    from emu.tuning.tune import Finished


class Tuning:
    """A search and its judgement. Tables are pandas frames."""

    def __init__(
        self, finished: Finished, folder: Path, kept: TemporaryDirectory[str] | None
    ) -> None:
        """`kept`: removes the folder together with the search."""
        self._finished = finished
        self._kept = kept
        self.folder = folder
        """The folder of the search: the study, the page, and a file for each run."""

    @property
    def winner(self) -> dict[str, Any] | None:
        """The settings of the winner, for `set=` of `emu.run`; None if no trial kept all
        constraints."""
        best = self._finished.tuned.winner
        return None if best is None else dict(best.settings)

    @property
    def accepted(self) -> bool:
        """Whether the winner is better than each rival on held-out seeds and loads."""
        return self._finished.tuned.is_accepted

    @property
    def reasons(self) -> list[str]:
        """Why the winner is accepted or refused, in sentences; empty without a winner."""
        judged = self._finished.tuned.judgement
        return [] if judged is None else list(judged.sentences())

    @cached_property
    def trials(self) -> pd.DataFrame:
        """A row for each trial: its settings, the mean of each goal, the number of its `seeds`, and
        `how` it ended: `complete`, `pruned`, `broken` (a constraint) or `failed`. The index is the
        trial's number; `front` says whether it is on the Pareto front."""
        import pandas as pd

        tuned = self._finished.tuned
        front = {own.number for own in tuned.front}
        names = [goal.name for goal in tuned.goals]
        rows = [
            {
                "trial": own.number,
                **own.settings,
                **dict(zip(names, own.means, strict=False)),
                "seeds": len(own.by_seed),
                "how": own.how,
                "front": own.number in front,
            }
            for own in tuned.trials
        ]
        return pd.DataFrame(rows).set_index("trial")

    @cached_property
    def held_out(self) -> pd.DataFrame:
        """A row for each run of the judgement: `settings` (`winner`, `defaults`, a preset), `load`
        (a factor of the spec's), `seed`, and the value of each goal."""
        import pandas as pd

        tuned = self._finished.tuned
        rows = [] if tuned.held_out is None else tuned.held_out.rows.items()
        return pd.DataFrame(
            [
                {"settings": name, "load": load, "seed": seed}
                | {goal.name: goal.value(row) for goal in tuned.goals}
                for (name, load), runs in rows
                for seed, row in sorted(runs.items())
            ],
            columns=["settings", "load", "seed", *(goal.name for goal in tuned.goals)],
        )

    def importances(self, goal: str | None = None) -> dict[str, float]:
        """Key -> its share in reaching the best trials of a goal, by default of the first one.
        Empty with fewer than 10 trials. Raises UsageError for a goal that there is not."""
        from emu.tuning.charts import importances

        names = [own.name for own in self._finished.tuned.goals]
        if goal is not None and goal not in names:
            raise UsageError(unknown_name("goal", goal, names))
        return importances(self._finished.tuned, 0 if goal is None else names.index(goal))

    def page(self) -> Path:
        """The page with the pictures, one HTML file that needs no network."""
        return self._finished.files["page"]

    def __str__(self) -> str:
        """How many trials ran, the winner, and the judgement, in sentences."""
        from emu.tuning.tables import sentences

        return "\n".join(sentences(self._finished.tuned))

    def __repr__(self) -> str:
        tuned = self._finished.tuned
        found = "accepted" if self.accepted else "refused" if tuned.winner else "none"
        return f"<emu.Tuning {tuned.setup.spec.name}: {len(tuned.trials)} trials, winner {found}>"

    def _repr_html_(self) -> str:
        """For Jupyter: the page, in a frame of its own so that its style stays there."""
        from emu.scripting.runs import framed

        return framed(self.page().read_text(encoding="utf-8"))


def tune(
    spec: Spec | str | Path,
    vary: Mapping[str, Any] | Iterable[str],
    *,
    minimise: str | Sequence[str] = (),
    maximise: str | Sequence[str] = (),
    subject_to: str | Sequence[str] = (),
    seeds: int = 5,
    trials: int = 50,
    held_out: int = 10,
    loads: Sequence[float] = (0.8, 1.2),
    set: Settings | None = None,
    model: str = PACKETS.name,
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | Path | None = None,
    quiet: bool = True,
) -> Tuning:
    """Searches settings of a spec, or of the spec of a file, that reach goals, and judges the
    winner on seeds and loads that the search has not seen.

    vary        keys with dots and their values: a range as `20KB..400KB`, a list, or None for a
                range that emu chooses; or just the names of keys
    minimise    figures that are to be small, as `fct_slowdown.p99`
    maximise    figures that are to be large
    subject_to  what must hold in each run, as `pause_frames=0`
    seeds       of a trial: the spec's seed and those after it
    trials      of the study, with those that are in the folder
    held_out    seeds of the judgement
    loads       further loads of the judgement, as factors of the spec's
    set         keys that are the same for all trials
    model       `packets` or `flow`
    workers     processes on this machine; as many as it has cores unless given
    scheduler   the address of a Dask cluster instead
    out         the folder of the results; a study that is in it goes on. Without it, a folder that
                goes with the Tuning
    quiet       no progress on stderr

    Raises UsageError and SpecError with all mistakes; HostError if `emu[sweep]` is not installed;
    EmuError if the spec itself, or trial after trial, fails.
    """
    from emu.sweeps.needs import need_packages

    need_packages("tuning needs", ("optuna",))
    from emu.tuning.goals import bound_of
    from emu.tuning.request import TuneRequest, setup_of
    from emu.tuning.tune import run_tune

    if model not in MODELS:
        raise UsageError(f"model: {unknown_name('model', str(model), list(MODELS))}")
    if out == "":
        raise UsageError("out: is empty; name a folder, or leave it out")
    request = TuneRequest(
        given(spec, set),
        varied(vary),
        [*_wishes(minimise, "minimise"), *_wishes(maximise, "maximise")],
        [bound_of(text, "subject_to") for text in _texts(subject_to)],
        seeds=seeds,
        trials=trials,
        held_out=held_out,
        loads=tuple(loads),
        model=model,
        workers=workers,
        scheduler=scheduler,
        option="vary",
    )
    setup = setup_of(request)
    kept = TemporaryDirectory(prefix="emu-tune-") if out is None else None
    folder = Path(kept.name if kept else out or "")
    finished = run_tune(setup, folder, stream=None if quiet else sys.stderr, on_note=print_note)
    if finished.tuned.stop is not None:
        raise finished.tuned.stop
    return Tuning(finished, folder, kept)


def varied(vary: Mapping[str, Any] | Iterable[str]) -> dict[str, Sequence[Any] | Span | None]:
    """Keys with their values; None: emu chooses the range. Raises UsageError."""
    from emu.sweeps.values import values_of

    if isinstance(vary, str):
        vary = [vary]
    if not isinstance(vary, Mapping):
        return dict.fromkeys(vary)
    return {
        key: None
        if values is None
        else values_of(values, f"vary {key}")
        if isinstance(values, str)
        else tuple(plain(values))
        for key, values in vary.items()
    }


def _wishes(names: str | Sequence[str], option: str) -> list[Wish]:
    from emu.tuning.goals import Wish

    return [Wish(name, option == "maximise", option) for name in _texts(names)]


def _texts(given_texts: str | Sequence[str]) -> Sequence[str]:
    return [given_texts] if isinstance(given_texts, str) else given_texts
