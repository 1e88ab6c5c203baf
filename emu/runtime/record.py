"""One run on any clock, with a line on stderr that shows its progress."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from emu.bgp.recorder import with_learned_routes
from emu.errors import HostError
from emu.measure.recording import Recording
from emu.measure.run_estimate import RunEstimate
from emu.measure.run_progress import RunProgress
from emu.output_dir import refuse_unwritable
from emu.report.parts import PartWriter
from emu.report.progress import ProgressLine
from emu.resources import free_memory_bytes, keep_freed_memory
from emu.runtime.runner import Runner
from emu.spec.scenario import Spec
from emu.streams import print_note
from emu.units import format_size
from topologies.graph import Topology


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
    time what a long run has recorded so far. Returns the spec with the routes that it was run with.

    Progress is written to `progress`, by default stderr; not if `quiet`.

    Raises UsageError, before anything runs, if the folder cannot be written.
    """
    refuse_unwritable(out)
    runner.refuse(spec)
    spec = with_learned_routes(spec, print_note)
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
