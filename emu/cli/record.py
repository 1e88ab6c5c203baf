"""One run on any clock, with a line on stderr that shows its progress."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

from emu.cli.notes import print_note
from emu.cli.options import is_given
from emu.clocks import AUTO, VIRTUAL
from emu.errors import HostError, UsageError
from emu.measure.recording import Recording
from emu.measure.run_estimate import RunEstimate
from emu.measure.run_progress import RunProgress
from emu.models import PACKETS
from emu.mpi_environment import mpi_ranks
from emu.output_dir import check_links, is_written_as_it_is
from emu.report.parts import PartWriter
from emu.report.progress import ProgressLine
from emu.resources import free_memory_bytes, keep_freed_memory
from emu.runtime import Runner, runner_of
from emu.runtime.auto_clock import ClockChoice, auto_clock
from emu.spec.model import Spec
from emu.units import format_size
from topologies.graph import Topology


def chosen_runner(
    model: str, clock: str, threads: int | None, specs: Sequence[Spec], *, quiet: bool
) -> Runner:
    """The runner that --model, --clock and --threads ask for, for these specs. Unless `quiet`,
    says which clock it chose. Raises UsageError for options that exclude each other."""
    if model != PACKETS.name and is_given("clock"):
        raise UsageError(f"--clock: the {model} model has no clock; leave one of the two out")
    if model == PACKETS.name and clock == AUTO:
        choice = choose_clock(threads, specs)
        clock = choice.clock.name
        if not quiet:
            print_note(str(choice))
    runner = on_threads(runner_of(model, clock), threads)
    return runner if mpi_ranks() == 1 else runner.over_ranks()


def on_threads(runner: Runner, threads: int | None) -> Runner:
    """The runner, with as many threads as --threads says. Raises UsageError where it has no
    choice."""
    return runner if threads is None else runner.with_threads(threads)


def choose_clock(threads: int | None, specs: Sequence[Spec]) -> ClockChoice:
    """What `--clock auto` means together with --threads, for these specs."""
    if threads is not None:
        return ClockChoice(VIRTUAL, "the one that runs on several threads")
    if mpi_ranks() > 1:
        return ClockChoice(VIRTUAL, "the one that runs over several processes")
    return auto_clock(specs)


def record(
    name: str,
    spec: Spec,
    runner: Runner,
    out: Path,
    *,
    progress: TextIO | None = None,
    quiet: bool = False,
) -> tuple[Recording, Spec, Topology]:
    """Runs the spec under this name. Captures are written to the folder `out`, and from time to
    time what a long run has recorded so far.

    Progress is written to `progress`, by default stderr; not if `quiet`.

    Raises UsageError, before anything runs, if the folder cannot be written.
    """
    refuse_unwritable(out)
    if estimate := runner.estimate(spec):
        announce(spec, estimate, quiet=quiet)
    keep_freed_memory()
    parts = PartWriter(out)
    with ProgressLine(name, None if quiet else progress or sys.stderr) as line:

        def on_progress(now: RunProgress) -> None:
            line.update(now)
            parts.update(now)

        recording = runner.run(spec, out=out, on_progress=on_progress, on_note=print_note)
    return recording, spec, spec.topology.build()


LARGE_HOSTS = 1024
"""Runs of so many hosts say beforehand what they take."""
_CERTAINLY = 2
"""An estimate is right within this factor."""


def announce(spec: Spec, estimate: RunEstimate, *, quiet: bool) -> None:
    """Prints the memory and the time that a large run takes, unless `quiet`.

    Raises HostError when the memory that is free certainly does not suffice.
    """
    free = free_memory_bytes()
    if estimate.memory_bytes > _CERTAINLY * free:
        remedy = "take fewer hosts, fewer flows or larger messages, or free some memory"
        if spec.payload == "real":
            remedy = f"set payload: elided, {remedy}"
        raise HostError(
            f"this run takes {estimate}, and {format_size(free)} of memory are free", remedy=remedy
        )
    if not quiet and len(spec.topology.build().hosts) >= LARGE_HOSTS:
        print_note(f"{spec.name}: takes {estimate}")


def refuse_unwritable(out: Path, option: str = "--out") -> None:
    """Raises UsageError if the folder of the option cannot be written.

    Does not make the folder, so that a killed run leaves no empty folder.
    """
    try:
        check_links(out.absolute())
        existing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        TemporaryFile(dir=existing).close()
    except OSError as error:
        raise UsageError(
            f"{out}: nothing can be written there ({error.strerror}); choose another {option}"
        ) from None


def refuse_unwritable_file(path: Path, option: str) -> None:
    """Raises UsageError if the folder of a file cannot be written; not for devices as
    `/dev/stdout`."""
    if not is_written_as_it_is(path):
        refuse_unwritable(path.parent, option)
