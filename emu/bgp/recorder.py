"""Gets the routes that FRR gives a fabric's switches in a run: from an earlier recording, or by
letting FRR run once in namespaces of this machine.

A recording depends on FRR's version, the fabric, the configurations and the times at which links
change. One with all of these is in the user's cache, so a run that is repeated has the same routes
at the same times.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emu.bgp.frr_conf import frr_confs
from emu.folders import user_folder
from emu.spec.outages import outages, silent_outages
from emu.spec.route_recording import LinkEvent, RouteRecording, read_recording, write_recording
from emu.spec.scenario import Spec

_FORMAT = 2
"""Of recordings; raised when earlier ones no longer hold."""
_PS_PER_NS = 1000
_LATE_NS = 10_000_000
"""From here on, a note says so. A switch takes some 75 ms."""
_LONGEST_NS = 240_000_000_000
"""After the last event, no recording goes on for longer."""

OnNote = Callable[[str], None]


def with_learned_routes(
    spec: Spec, on_note: OnNote = lambda _: None, *, repetition: int = 0
) -> Spec:
    """The spec with a recording of its routes, if BGP is its control plane.

    `repetition` tells recordings of the same fabric apart. Raises HostError: this machine lacks
    FRR, or forbids namespaces; FabricError: FRR refused a configuration, or ended.
    """
    if not spec.has_bgp or spec.recorded_routes is not None:
        return spec
    folder = user_folder("XDG_CACHE_HOME", ".cache") / "emu" / "routes"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_key(spec, repetition)}.json"
    with _locked(path.with_suffix(".lock")):
        if not path.exists():
            on_note("FRR runs once on every switch of this fabric, to record the routes of BGP")
            write_recording(_record(spec), path)
    recording = read_recording(path)
    for note in _notes(recording):
        on_note(note)
    return spec.model_copy(update={"recorded_routes": str(path)})


def events_of(spec: Spec) -> tuple[LinkEvent, ...]:
    """The changes of links in a run."""
    number = {cable: place for place, cable in enumerate(spec.topology.build().cables)}
    kinds = [dict(found(spec)) for found in (outages, silent_outages)]
    cut: list[tuple[int, ...]] = [(), ()]
    events = []
    for at_ps in sorted(set().union(*kinds)):
        for kind, states in enumerate(kinds):
            if at_ps in states:
                cut[kind] = tuple(sorted(number[cable] for cable in states[at_ps]))
        if at_ps < spec.time_limit_ps:
            events.append(LinkEvent(at_ps // _PS_PER_NS, *cut))
    return tuple(events)


def _record(spec: Spec) -> RouteRecording:
    # A lab's modules are imported only by who needs a lab.
    from emu.lab.ipc.jobs import RecordRoutes
    from emu.lab.namespace import run_in_lab

    job = RecordRoutes(spec.to_json(), "/", frr_confs(spec), events_of(spec), _until_ns(spec))
    result, _ = run_in_lab(job, on_progress=lambda progress: None)
    return result.recording


def _until_ns(spec: Spec) -> int:
    """When a recording ends: with the run, or long after its last event."""
    last_ns = max((event.at_ns for event in events_of(spec)), default=0)
    return min(spec.time_limit_ps // _PS_PER_NS, last_ns + _LONGEST_NS)


def _key(spec: Spec, repetition: int) -> str:
    """Differs for all that a recording depends on."""
    topology = spec.topology.build()
    parts: list[Any] = [
        _FORMAT,
        _frr_version(),
        [host.name for host in topology.hosts],
        [switch.name for switch in topology.switches],
        [(cable.a.interface, cable.b.interface) for cable in topology.cables],
        frr_confs(spec),
        events_of(spec),
        _until_ns(spec),
        repetition,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _frr_version() -> str:
    from emu.lab.frr.daemons import version

    return version()


def _notes(recording: RouteRecording) -> Iterator[str]:
    if not recording.settled:
        yield "the routes of BGP were still changing when their recording ended"
    if recording.late_ns > _LATE_NS:
        yield (
            f"this machine was busy while {recording.control_plane} ran, so its route changes may "
            f"be {recording.late_ns / 1e6:.0f} ms late; delete the recording to repeat it"
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Waits while another process records the same routes."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
