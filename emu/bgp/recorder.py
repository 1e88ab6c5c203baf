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
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from emu.bgp.frr_conf import frr_confs
from emu.errors import EmuError, FabricError
from emu.folders import user_folder
from emu.output_dir import writing_into
from emu.spec.outages import PS_PER_NS, link_events
from emu.spec.route_recording import (
    LinkEvent,
    RouteRecording,
    read_recording,
    read_recordings,
    write_recording,
    write_recordings,
)
from emu.spec.scenario import Spec
from emu.words import listed

_FORMAT = 4
"""Of recordings; raised when earlier ones no longer hold."""
_LATE_NS = 10_000_000
"""From here on, a note says so. A switch takes some 75 ms."""
_LONGEST_NS = 240_000_000_000
"""After the last event, no recording goes on for longer."""

OnNote = Callable[[str], None]


def with_learned_routes(spec: Spec, on_note: OnNote = lambda _: None) -> Spec:
    """The spec with a recording of its routes, if BGP is its control plane.

    Raises HostError: this machine lacks FRR, or forbids namespaces; FabricError: FRR refused a
    configuration, or ended; EmuError: the recording cannot be written.
    """
    if not spec.has_bgp:
        return spec
    if spec.recorded_routes is not None:
        _compare_settings(spec, read_recording(Path(spec.recorded_routes)), on_note)
        return spec
    path = _kept(_key(spec, link_events(spec), _until_ns(spec)))
    with _locked(path):
        if not path.exists():
            on_note("FRR runs once on every switch of this fabric, to record the routes of BGP")
            recording = _record(spec)
            with _writing_into(path.parent):
                write_recording(recording, path)
    recording = read_recording(path)
    for note in _notes(recording, path):
        on_note(note)
    return spec.model_copy(update={"recorded_routes": str(path)})


def record_answers(
    spec: Spec, states: Sequence[LinkEvent], on_note: OnNote = lambda _: None
) -> tuple[RouteRecording, ...]:
    """What BGP does in each of these states of the links, which follow one another, each when the
    one before is answered. The first follows all links up. Of the spec's faults, none happens.

    Raises as `with_learned_routes`.
    """
    path = _kept(_key(spec, states, "answers"))
    with _locked(path):
        if not path.exists():
            on_note("FRR runs once on every switch of this fabric, to record its answers to events")
            recordings = _record_answers(spec, states)
            with _writing_into(path.parent):
                write_recordings(recordings, path)
    try:
        recordings = read_recordings(path)
    except (OSError, ValueError):
        raise EmuError(f"{path}: is not a file of recorded routes; remove it") from None
    latest = max(recordings, key=lambda recording: recording.late_ns)
    for note in _notes(latest, path):
        on_note(note)
    return recordings


def _record_answers(spec: Spec, states: Sequence[LinkEvent]) -> tuple[RouteRecording, ...]:
    from emu.lab.ipc.jobs import RecordAnswers
    from emu.lab.namespace import run_in_lab

    job = RecordAnswers(spec.to_json(), "/", frr_confs(spec), tuple(states))
    result, _ = run_in_lab(job, on_progress=lambda progress: None)
    restless = [own.holds_until_ns for own in result.recordings if own.holds_until_ns is not None]
    if restless:
        raise FabricError(
            f"FRR did not settle: {restless[0] // 10**9} s after links had changed, its routes or "
            "sessions still did; look for a configuration whose sessions come and go, or for other "
            "work of this machine"
        )
    return result.recordings


def _kept(key: str) -> Path:
    """The file of the user's cache with what was recorded."""
    return user_folder("XDG_CACHE_HOME", ".cache") / "emu" / "routes" / f"{key}.json"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other processes from recording the same routes."""
    with _writing_into(path.parent):
        lock = path.with_suffix(".lock").open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _record(spec: Spec) -> RouteRecording:
    # A lab's modules are imported only by who needs a lab.
    from emu.lab.ipc.jobs import RecordRoutes
    from emu.lab.namespace import run_in_lab

    job = RecordRoutes(spec.to_json(), "/", frr_confs(spec), link_events(spec), _until_ns(spec))
    result, _ = run_in_lab(job, on_progress=lambda progress: None)
    return result.recording


def _until_ns(spec: Spec) -> int:
    """When a recording ends: with the run, or long after its last event."""
    last_ns = max((event.at_ns for event in link_events(spec)), default=0)
    return min(spec.time_limit_ps // PS_PER_NS, last_ns + _LONGEST_NS)


def _key(spec: Spec, events: Sequence[LinkEvent], until: int | str) -> str:
    """Differs for all that a recording depends on."""
    topology = spec.topology.build()
    parts: list[Any] = [
        _FORMAT,
        _frr_version(),
        [host.name for host in topology.hosts],
        [switch.name for switch in topology.switches],
        [(cable.a.interface, cable.b.interface) for cable in topology.cables],
        frr_confs(spec),
        events,
        until,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _frr_version() -> str:
    from emu.lab.frr.daemons import version

    return version()


def _notes(recording: RouteRecording, path: Path) -> Iterator[str]:
    if recording.failed_sessions:
        yield f"no session of BGP was established at {listed(recording.failed_sessions, 6)}"
    if recording.late_ns > _LATE_NS:
        yield (
            f"this machine was busy while {recording.control_plane} ran, so its route changes may "
            f"be {recording.late_ns / 1e6:.0f} ms late; delete {path} to let it run again"
        )


def _compare_settings(spec: Spec, recording: RouteRecording, on_note: OnNote) -> None:
    now = frr_confs(spec)
    differ = [switch for switch, conf in recording.confs.items() if now.get(switch) != conf]
    if differ:
        on_note(
            f"the recorded routes are those of other settings of BGP (on {listed(differ, 4)}); "
            "leave recorded_routes out to record those of this spec"
        )


def _writing_into(folder: Path) -> AbstractContextManager[None]:
    return writing_into(folder, "folder by XDG_CACHE_HOME")
