"""The real clock: a lab is built, does the spec's workload, and is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from emu.clocks import REAL
from emu.errors import UsageError
from emu.lab.ipc.jobs import RunTraffic
from emu.lab.ipc.messages import Progress
from emu.lab.namespace import run_in_lab
from emu.lab.observation_file import read_observation
from emu.measure.merge import merge_observations
from emu.measure.recording import Recording
from emu.measure.run_progress import RunProgress
from emu.runtime.obstacle import elided_payload
from emu.runtime.runner import Runner, ignore
from emu.runtime.slowdown import choose_slowdown
from emu.spec.scenario import Spec

_REPEATS = (2, 4, 16)
"""Times the chosen slowdown. A machine that is shared may do much less now than when it was
tried."""


class RealRunner(Runner):
    """Runs each spec in a lab of its own.

    Where the slowdown is ours to choose, a run that the machine did not keep up with is repeated
    at a larger one, up to three times, and the recording says so.

    Raises HostError when the machine lacks something, FabricError when the lab died, and
    KeyboardInterrupt; the lab is gone by then.
    """

    clock = REAL

    def refuse(self, spec: Spec) -> None:
        if found := elided_payload(spec):
            raise UsageError(str(found))

    def _run(
        self,
        spec: Spec,
        *,
        out: Path,
        on_progress: Callable[[RunProgress], None],
        on_note: Callable[[str], None],
    ) -> Recording:
        slowdown, notes = slowdown_for(spec, on_note)
        recording = run_at(spec, slowdown, out, on_progress=on_progress, notes=notes)
        for times in _REPEATS if spec.slowdown == "auto" else ():
            if recording.fidelity.verdict == "ok":
                break
            slower = times * slowdown
            notes = (*notes, f"repeated at {slower:g}: {recording.fidelity.reasons[0]}")
            on_note(notes[-1])
            recording = run_at(spec, slower, out, on_progress=on_progress, notes=notes)
        return recording


def slowdown_for(
    spec: Spec, on_note: Callable[[str], None] = ignore
) -> tuple[float, tuple[str, ...]]:
    """The slowdown at which a lab runs this spec, and why where the spec leaves it to us.

    Measures the machine first if that has not been done. `on_note` informs the user.
    """
    return choose_slowdown(spec, run_at, on_note)


def run_at(
    spec: Spec,
    slowdown: float,
    out: Path,
    *,
    on_progress: Callable[[RunProgress], None] = ignore,
    notes: tuple[str, ...] = (),
) -> Recording:
    """One run at this slowdown, whatever the spec says; `notes` go into the recording."""
    began = time.monotonic()
    job = RunTraffic(spec.to_json(), str(out.resolve()), slowdown)

    def relay(message: Progress) -> None:
        if message.moment is not None:
            on_progress(message.moment)

    result, files = run_in_lab(job, on_progress=relay)
    return merge_observations(
        spec,
        spec.topology.build(),
        [read_observation(file) for file in files],
        plane=result.plane,
        clock=REAL,
        slowdown=slowdown,
        marker=result.marker,
        wall_seconds=time.monotonic() - began,
        cpu=result.cpu,
        captures={name: out / Path(path).name for name, path in result.captures.items()},
        notes=(*result.notes, *notes),
        streams=result.streams,
    )
