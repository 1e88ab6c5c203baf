"""A measurement from its setup to its files, for `emu convergence`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from emu.convergence.answers import answers
from emu.convergence.events import Event
from emu.convergence.mistakes import (
    MistakeResult,
    MistakeTrials,
    mistake_result,
    mistake_trials,
    mistakes_of,
)
from emu.convergence.page import page
from emu.convergence.planes import Plane
from emu.convergence.request import Setup
from emu.convergence.runs import Trial, run_trials, trials
from emu.convergence.stages import Measured, Result
from emu.convergence.to_document import document
from emu.lab.probe import require
from emu.output_dir import refuse_unwritable, write_text, writing_into
from emu.report.summary import to_json
from emu.runtime.runner import ignore

DOCUMENT_FILE = "convergence.json"
PAGE_FILE = "convergence.html"


@dataclass(frozen=True)
class Comparison:
    """A measurement that is over: its results, and its files."""

    setup: Setup
    results: Sequence[Result]
    """By event, then by plane."""
    mistakes: Sequence[MistakeResult]
    """None unless they are asked for."""
    computed: int
    """The runs that were done now; the others were in the folder."""
    files: Mapping[str, Path]
    """What a file has -> its path."""


def run_convergence(
    setup: Setup,
    folder: Path,
    *,
    stream: TextIO | None,
    on_note: Callable[[str], None] = ignore,
) -> Comparison:
    """Asks all control planes, does all runs, and writes all files. `stream`: where progress goes.

    Raises UsageError for a folder that cannot be written; HostError: FRR or OpenSM is missing;
    FabricError if one of them fails; EmuError if a run fails.
    """
    for names in _needs(setup.planes):
        require(*names)
    refuse_unwritable(folder)
    with writing_into(folder):
        planned = _planned(setup, folder, on_note)
        wrong = _with_mistakes(setup, folder, on_note)
        found, computed = run_trials(
            setup.name,
            [*planned, *(trial for own in wrong for trial in (own.usual, own.failure))],
            folder,
            workers=setup.request.workers,
            stream=stream,
            on_note=on_note,
        )
        ended = {own.trial.name: own for own in found}
        results = [
            Result(
                plane, event, [Measured(ended[t.name]) for t in planned if _is_of(t, plane, event)]
            )
            for event in setup.events
            for plane in setup.planes
        ]
        mistakes = [mistake_result(own, lambda trial: ended[trial.name]) for own in wrong]
        files = {"page": folder / PAGE_FILE, "summary": folder / DOCUMENT_FILE}
        comparison = Comparison(setup, results, mistakes, computed, files)
        write_text(files["summary"], to_json(document(comparison)))
        write_text(files["page"], page(comparison))
    return comparison


def _needs(planes: Iterable[Plane]) -> Iterator[tuple[str, ...]]:
    """What the planes need of this machine, by the names of `emu check`."""
    planes = list(planes)
    if any(plane.is_bgp for plane in planes):
        yield "namespaces", "FRR"
    if any(plane.is_opensm for plane in planes):
        yield "OpenSM", "ibsim"


def _planned(setup: Setup, folder: Path, on_note: Callable[[str], None]) -> list[Trial]:
    planned: list[Trial] = []
    said: set[tuple[str, str]] = set()
    for plane, spec in setup.planes.items():
        for event in setup.events:
            own = [incident for incident in setup.incidents if incident.event is event]

            def named(note: str, plane: str = plane.name, event: str = event) -> None:
                if (plane, note) not in said:  # one recording serves two events
                    said.add((plane, note))
                    on_note(f"{plane}, {event}: {note}")

            found = answers(spec, plane, event, own, folder, named)
            planned += trials(plane, spec, own, found, folder)
    return planned


def _with_mistakes(
    setup: Setup, folder: Path, on_note: Callable[[str], None]
) -> list[MistakeTrials]:
    """The runs of all mistakes."""
    incident, spec = setup.mistakes_at, setup.request.spec
    if incident is None:
        return []
    return [
        mistake_trials(spec, own, incident, folder, on_note)
        for own in mistakes_of(spec, incident, list(setup.planes))
    ]


def _is_of(trial: Trial, plane: Plane, event: Event) -> bool:
    return trial.plane is plane and trial.incident.event is event
