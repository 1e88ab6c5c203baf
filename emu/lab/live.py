"""A run on the real clock: a lab is built, does the spec's workload, and is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from emu.errors import UsageError
from emu.lab.ipc.messages import Progress as LabProgress
from emu.lab.ipc.messages import Request
from emu.lab.ipc.progress import told_progress
from emu.lab.job import read_observation
from emu.lab.namespace import run_in_lab
from emu.lab.slowdown import choose_slowdown
from emu.measure.cpu import CpuSamples
from emu.measure.merge import assemble
from emu.measure.progress import Progress
from emu.measure.recording import FlowRecord, Recording
from emu.spec.scenario import Spec
from topologies.graph import Topology

_REPEATS = (2, 4, 16)
"""Times the slowdown that was chosen. What the machine could do when it was tried may be much
more than it can do now, where it is shared."""


def run_live(
    spec: Spec,
    topology: Topology,
    *,
    out: Path,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    say: Callable[[str], None] = lambda text: None,
) -> Recording:
    """Runs the spec in a lab of its own. Captures are written into the folder `out`.

    Where the slowdown is ours to choose, a run that the machine did not keep up
    with is repeated at a larger one, up to three times, and the recording says so.

    `say` gets sentences for the user. Raises UsageError for what only the virtual
    clock can do, HostError when the machine lacks something, FabricError when the
    lab died, KeyboardInterrupt; the lab is gone by then.
    """
    if spec.payload == "elided":
        raise UsageError(
            "payload: elided leaves the bytes of messages out, and packets on interfaces have "
            "theirs; add --clock virtual, or --set payload=real"
        )
    slowdown, notes = choose_slowdown(spec, topology, run_at, say)
    recording = run_at(spec, topology, slowdown, out, on_progress=on_progress, notes=notes)
    for times in _REPEATS if spec.slowdown == "auto" else ():
        if recording.fidelity.verdict == "ok":
            break
        slower = times * slowdown
        notes = (*notes, f"repeated at {slower:g}: {recording.fidelity.reasons[0]}")
        say(notes[-1])
        recording = run_at(spec, topology, slower, out, on_progress=on_progress, notes=notes)
    return recording


def run_at(
    spec: Spec,
    topology: Topology,
    slowdown: float,
    out: Path,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    notes: tuple[str, ...] = (),
) -> Recording:
    """The same with the slowdown given, whatever the spec says; `notes` go into the recording."""
    began = time.monotonic()
    request = Request("run", spec.to_json(), str(out.resolve()), {"slowdown": slowdown})

    def relay(message: LabProgress) -> None:
        progress = told_progress(message)
        if progress is not None:
            on_progress(progress)

    result, files = run_in_lab(request, on_progress=relay)
    return assemble(
        spec,
        topology,
        [read_observation(file) for file in files],
        plane=result["plane"],
        clock="real",
        slowdown=slowdown,
        marker=result["marker"],
        wall_seconds=time.monotonic() - began,
        cpu=CpuSamples(**result["cpu"]),
        captures={name: out / Path(path).name for name, path in result["captures"].items()},
        notes=(*result["notes"], *notes),
        streams=[FlowRecord(**flow) for flow in result["streams"]],
    )
