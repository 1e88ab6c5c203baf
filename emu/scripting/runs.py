"""Runs a spec for a script, and what a script learns from a run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from emu.clocks import AUTO, CLOCKS
from emu.errors import UsageError
from emu.limits import MOST_THREADS
from emu.models import MODELS, PACKETS
from emu.report.diagnosis import Diagnosis, diagnoses
from emu.report.html import run_page
from emu.report.run_view import RunFacts
from emu.report.store import load_run
from emu.report.text import print_run
from emu.report.write import PAGE_FILE, write_run
from emu.runtime import Runner
from emu.runtime.choose import choose_runner
from emu.runtime.record import record
from emu.scripting import frames
from emu.scripting.spec import Settings, given
from emu.spec.diagnostic import unknown_name
from emu.spec.scenario import Spec

if TYPE_CHECKING:
    import pandas as pd
    from scapy.packet import Packet


class Run:
    """A run of one spec. Tables are pandas frames (`emu.scripting.frames`)."""

    def __init__(self, facts: RunFacts, folder: Path, kept: TemporaryDirectory[str] | None) -> None:
        """`kept`: removes the folder together with the run."""
        self._facts = facts
        self._kept = kept
        self.folder = folder
        """The folder of the run: summary, samples, spec, page and captures, as `emu run` writes
        them."""

    @property
    def spec(self) -> Spec:
        return self._facts.spec

    @property
    def name(self) -> str:
        return self._facts.name

    @property
    def clock(self) -> str:
        """`exact`, `virtual` or `real`; `virtual` of the flow model, which computes its times."""
        return self._facts.recording.clock

    @property
    def conclusive(self) -> bool:
        """Whether the machine kept up; always true but on the real clock."""
        return self._facts.conclusive

    @cached_property
    def flows(self) -> pd.DataFrame:
        """A row for each flow: `frames.flows`."""
        return frames.flows(self._facts.recording)

    @cached_property
    def fct(self) -> pd.DataFrame:
        """A row for each message or I/O: `frames.requests`."""
        return frames.requests(self._facts.recording.requests)

    @cached_property
    def ports(self) -> pd.DataFrame:
        """The counters of each switch port: `frames.ports`."""
        return frames.ports(self._facts.recording)

    @cached_property
    def hosts(self) -> pd.DataFrame:
        """The counters of each host: `frames.hosts`."""
        return frames.hosts(self._facts.recording)

    @cached_property
    def totals(self) -> pd.Series:
        """The counters of the whole fabric."""
        return frames.totals(self._facts.recording)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """A row for each check of the spec: `check`, `passed` (NA: not judged) and `measured`."""
        return frames.checks(self._facts.checks)

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """What is wrong with the fabric, the gravest first, each with its evidence and the settings
        that cure it."""
        return diagnoses(self._facts)

    def series(self, kind: str) -> pd.DataFrame:
        """Samples over time: `queue`, `buffer`, `sent`, `paused`, `credit_wait` or `delivered`
        (`frames.series`). Raises UsageError for another kind, and for one that the flow model
        does not know."""
        return frames.series(self._facts.recording, kind)

    def capture(self, port: str) -> list[Packet]:
        """The packets that the spec's `capture:` caught at a port, as scapy layers, in order.

        `packet.time` is in seconds of emulated time. Raises UsageError for a port without a
        capture.
        """
        from emu.wire.layers.dissect import packets

        captures = self._facts.recording.captures
        if port not in captures:
            raise UsageError(unknown_name("capture of port", str(port), list(captures)))
        return packets(captures[port])

    def page(self) -> Path:
        """The run's page, one HTML file that needs no network."""
        return self.folder / PAGE_FILE

    def __str__(self) -> str:
        """The report as `emu run` prints it, verdict first."""
        text = io.StringIO()
        print_run(self._facts, {}, text)
        return text.getvalue()

    def __repr__(self) -> str:
        finished = int(self.flows["completed"].sum())
        flows = f"{finished} of {len(self.flows)} flows completed"
        return f"<emu.Run {self.name}: {flows}, {self.clock} clock>"

    def _repr_html_(self) -> str:
        """For Jupyter: the page, in a frame of its own so that its style stays there."""
        return framed(run_page(self._facts))


def framed(page: str) -> str:
    """A page in a frame of its own, for Jupyter."""
    from html import escape

    inside = escape(page, quote=True)
    return f'<iframe srcdoc="{inside}" style="width:100%;height:40em;border:0"></iframe>'


def run(
    spec: Spec | str | Path,
    *,
    clock: str = AUTO,
    set: Settings | None = None,
    seed: int | None = None,
    model: str = PACKETS.name,
    threads: int | None = None,
    out: str | Path | None = None,
    quiet: bool = True,
) -> Run:
    """Runs a spec, or the spec of a file, and returns the results.

    clock    `exact`, `virtual` or `real`; `auto` chooses as `emu run` does
    set      keys with dots and their values: {"switches.ecn.kmin": "50KB"}
    seed     the same as {"seed": ...} of `set`
    model    `packets`, or `flow`, which has no clock and no packets
    threads  of the virtual clock
    out      the folder for the run's files; without it, a folder that goes with the Run
    quiet    no progress on stderr

    Raises SpecError with all mistakes of the spec; UsageError, HostError and FabricError as `emu
    run` prints them.
    """
    wanted = given(spec, set if seed is None else {**(set or {}), "seed": seed})
    runner = runner_for([wanted], model, clock, threads)
    if out == "":
        raise UsageError("out: is empty; name a folder, or leave it out")
    kept = TemporaryDirectory(prefix="emu-run-") if out is None else None
    folder = Path(kept.name if kept else out or "")
    facts = RunFacts(wanted.name, *record(wanted.name, wanted, runner, folder, quiet=quiet))
    write_run(facts, folder)
    return Run(facts, folder, kept)


def runner_for(specs: Sequence[Spec], model: str, clock: str, threads: int | None) -> Runner:
    """The runner of these specs that the parameters name. Raises UsageError for parameters that do
    not exist, or that exclude each other."""
    for parameter, value, known in (("model", model, MODELS), ("clock", clock, (AUTO, *CLOCKS))):
        if not isinstance(value, str) or value not in known:
            raise UsageError(f"{parameter}: {unknown_name(parameter, str(value), list(known))}")
    if threads is not None and not (type(threads) is int and 1 <= threads <= MOST_THREADS):
        raise UsageError(f"threads: {threads!r} is not a whole number from 1 to {MOST_THREADS}")
    return choose_runner(
        model, clock, threads, specs, clock_option=None if clock == AUTO else "clock"
    )


def load(folder: str | Path) -> Run:
    """Reads a run back that `emu run`, `emu compare` or `run` has written.

    Raises EmuError if the folder has no whole run, or one of another version.
    """
    place = Path(folder)
    return Run(load_run(place), place, None)
