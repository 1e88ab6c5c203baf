"""A decision from its setup to its files: what `emu decide` and `emu.decide` both do.

    probe          one run: which figures there are
    tuning         the settings of candidates that are tuned first
    sensitivity    all candidates as they are, and with each change
    growth         the same at larger sizes
    choice         by the rules of `choice.py`

Each run is kept in the folder by its key, so all of it goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from emu.decisions.candidates import Candidate, Refused
from emu.decisions.choice import Choice, Evidence, choose
from emu.decisions.figures import Figures, figures_of
from emu.decisions.growth import Size
from emu.decisions.names import TUNED
from emu.decisions.page import page
from emu.decisions.request import DecisionRequest, Setup
from emu.decisions.standing import Standing, standings_of
from emu.decisions.to_document import document
from emu.decisions.tuned import Tuning, refuse_keys, tune
from emu.errors import EmuError
from emu.output_dir import refuse_unwritable, write_text, writing_into
from emu.report.summary import to_json
from emu.runtime.runner import ignore
from emu.sensitivities import request as sensitivities
from emu.sensitivities.effect import Rows
from emu.sensitivities.measure import Measured, run_sensitivity
from emu.sensitivities.pinned import pinned
from emu.sweeps.cluster import clusters_kept, cores
from emu.sweeps.evaluate import Evaluator
from emu.sweeps.plan import Basis, base_of
from emu.sweeps.progress import SweepLine
from emu.sweeps.store import Row, Store
from emu.units import write_rate

DOCUMENT_FILE = "decide.json"
PAGE_FILE = "decide.html"
CHANGES_FOLDER = "changes"
"""Where page and document of all changes are, as `emu sensitivity` writes them."""


@dataclass(frozen=True)
class Grown:
    """All candidates at a size."""

    size: Size
    standings: Mapping[str, Standing]


@dataclass(frozen=True)
class Decided:
    """A decision that was made."""

    setup: Setup
    figures: Figures
    evidence: Mapping[str, Evidence]
    """Name of a candidate -> what was found out about it."""
    refused: Sequence[Refused]
    tunings: Sequence[Tuning]
    growth: Sequence[Grown]
    choice: Choice | None
    """None: no candidate fits."""
    computed: int
    """The runs of comparison, changes and growth that were done now."""
    files: Mapping[str, Path]
    """What a file has -> its path."""


def run_decide(
    setup: Setup,
    folder: Path,
    *,
    stream: TextIO | None,
    on_note: Callable[[str], None] = ignore,
) -> Decided:
    """Runs all of it, and writes all files. `stream`: where progress goes.

    Raises UsageError or SpecError for keys that cannot be searched; UsageError for a folder that
    cannot be written or a figure that there is not; EmuError if a candidate fails;
    KeyboardInterrupt or FabricError if it is stopped.
    """
    refuse_keys(setup.candidates, setup.request)
    refuse_unwritable(folder)
    with writing_into(folder), clusters_kept():
        work = _Work(setup, folder, stream, on_note)
        figures = work.probe()
        made, refused, tunings = work.tuned(figures)
        measured = work.measured(made)
        growth = [work.grown(size, made, figures) for size in setup.sizes]
        evidence = _evidence(setup, made, measured, figures)
        choice = choose(evidence, figures.deciding, setup.request.margin)
        files = {"page": folder / PAGE_FILE, "summary": folder / DOCUMENT_FILE}
        if "page" in measured.files:
            files["changes"] = measured.files["page"]
        decided = Decided(
            setup=setup,
            figures=figures,
            evidence=evidence,
            refused=[*setup.refused, *refused],
            tunings=tunings,
            growth=growth,
            choice=choice,
            computed=work.computed + measured.computed,
            files=files,
        )
        write_text(files["summary"], to_json(document(decided)))
        write_text(files["page"], page(decided))
    return decided


def _evidence(
    setup: Setup, made: Sequence[Candidate], measured: Measured, figures: Figures
) -> dict[str, Evidence]:
    results = {own.side.name: own for own in measured.results}
    rows = {candidate.name: results[candidate.name].side.before for candidate in made}
    standings = standings_of(rows, figures.deciding)
    names = [{cost.change.name for cost in results[own.name].costs} for own in made]
    shared = frozenset(set.intersection(*names))
    return {
        own.name: Evidence(
            own, standings[own.name], setup.bills.get(own.name), results[own.name], shared
        )
        for own in made
    }


class _Work:
    """The runs of a decision, step by step."""

    def __init__(
        self, setup: Setup, folder: Path, stream: TextIO | None, on_note: Callable[[str], None]
    ) -> None:
        self._setup, self._folder = setup, folder
        self._stream, self._on_note = stream, on_note
        self.computed = 0
        """Runs that were done now, of the probe and of growth."""

    @property
    def _request(self) -> DecisionRequest:
        return self._setup.request

    def probe(self) -> Figures:
        """Which figures there are. Raises EmuError if the run fails."""
        first = self._setup.candidates[0]
        basis = self._sensitivity([first]).basis
        ((_, row),) = self._rows(basis, [(first.name, self._setup.seeds[0])], "probe")
        if row["error"]:
            raise EmuError(f"{first.name}: {row['error']}")
        kinds = {own.spec.fabric_kind.is_ethernet for own in self._setup.candidates}
        return figures_of(first.spec, row, self._request.by, f"{self._request.dashes}by", kinds)

    def tuned(self, figures: Figures) -> tuple[list[Candidate], list[Refused], list[Tuning]]:
        """The candidates with the settings of those that are tuned, and those that cannot be."""
        made: list[Candidate] = []
        refused: list[Refused] = []
        tunings: list[Tuning] = []
        for candidate in self._setup.candidates:
            if candidate.fabric != TUNED:
                made.append(candidate)
                continue
            folder = self._folder / f"tune-{write_rate(candidate.rate_bps)}"
            found = tune(
                candidate,
                figures.deciding,
                self._request,
                folder,
                stream=self._stream,
                on_note=self._on_note,
            )
            if isinstance(found, Refused):
                refused.append(found)
            else:
                tunings.append(found)
                made.append(found.candidate)
        if not made:
            raise EmuError("\n".join(f"{own.name}: {own.reason}" for own in refused))
        return made, refused, tunings

    def measured(self, made: Sequence[Candidate]) -> Measured:
        """All candidates, and their changes. Raises EmuError if a candidate fails."""
        measured = run_sensitivity(
            self._sensitivity(made),
            self._folder,
            pages=self._folder / CHANGES_FOLDER if self._setup.kinds else None,
            stream=self._stream,
            on_note=self._on_note,
        )
        if measured.stop is not None:
            raise measured.stop
        return measured

    def _sensitivity(self, made: Sequence[Candidate]) -> sensitivities.Setup:
        request = self._request
        asked = sensitivities.SensitivityRequest(
            request.spec, seeds=request.seeds, workers=request.workers, scheduler=request.scheduler
        )
        sides = {candidate.name: pinned(candidate.spec) for candidate in made}
        return sensitivities.Setup(asked, sides, self._setup.kinds)

    def grown(self, size: Size, made: Sequence[Candidate], figures: Figures) -> Grown:
        """The candidates at a size."""
        specs = {own.name: size.of(own.spec) for own in made}
        bases = {name: base_of(spec) for name, spec in specs.items()}
        basis = Basis(self._setup.name, bases, (), size.model, (), "growth")
        runs = [(name, seed) for seed in self._setup.seeds for name in bases]
        rows: dict[str, dict[int, Row]] = {name: {} for name in bases}
        for (name, seed), row in self._rows(basis, runs, f"{size.hosts:,} hosts, {size.model}"):
            rows[name][seed] = row
        own: Mapping[str, Rows] = rows
        return Grown(size, standings_of(own, figures.deciding))

    def _rows(
        self, basis: Basis, runs: Sequence[tuple[str, int]], what: str
    ) -> list[tuple[tuple[str, int], Row]]:
        """(Name of a candidate, seed) and the row of each run."""
        request = self._request
        found: list[tuple[tuple[str, int], Row]] = []
        with (
            Evaluator(
                basis,
                Store(self._folder),
                workers=request.workers or cores(),
                scheduler=request.scheduler,
                on_note=self._on_note,
            ) as evaluator,
            SweepLine(f"{self._setup.name}: {what}", len(runs), 0, self._stream) as line,
        ):
            for name, seed in runs:
                evaluator.submit(basis.run(0, {}, seed, name))
            while len(found) < len(runs):
                for run, row in evaluator.ended():
                    found.append(((run.variant, run.seed), row))
                    line.add(failed=bool(row["error"]))
        self.computed += evaluator.computed
        return found
