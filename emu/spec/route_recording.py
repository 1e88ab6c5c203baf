"""What a fabric's control plane did while links were lost and came back: routes, with times.

A recording is made once, by FRR in namespaces of this machine, and is a file. Runs on every clock
replay it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emu.errors import UsageError
from emu.output_dir import write_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Ports = tuple[int, ...]
"""The numbers of a switch's ports, ascending. A port that is there twice gets twice the flows."""
Fib = dict[str, Ports]
"""Prefix, as text -> the ports of its equal next hops."""


class LinkEvent(NamedTuple):
    """Links are lost or come back."""

    at_ns: int
    """Since the start of the run."""
    down: tuple[int, ...]
    """All cables without a link from then on, by their place in the topology's cables."""
    silent: tuple[int, ...] = ()
    """All cables that carry nothing from then on, although their ports are up."""


class RouteChange(NamedTuple):
    """The routes of a switch change."""

    at_ns: int
    switch: str
    fib: Fib
    """Only prefixes that change. No ports: the prefix is withdrawn."""
    by_kernel: bool
    """Whether the kernel took a port without carrier out of its routes, before the routing protocol
    said so."""


class SessionChange(NamedTuple):
    """A session is established or lost, as one of its ends sees it."""

    at_ns: int
    switch: str
    interface: str
    established: bool


class RouteRecording(NamedTuple):
    """The answers of a control plane to the events of a run."""

    control_plane: str
    """The program and its version."""
    confs: dict[str, str]
    """The configuration of each switch."""
    events: tuple[LinkEvent, ...]
    first: dict[str, Fib]
    """The routes of each switch when all sessions were established, before the first event."""
    changes: tuple[RouteChange, ...]
    """In order of time."""
    sessions: tuple[SessionChange, ...]
    started_s: float
    """Wall-clock time from the first daemon's start until no route changed any more."""
    holds_until_ns: int | None
    """When the recording ended although routes were still to change; None: they were not."""
    failed_sessions: tuple[str, ...]
    """The interfaces of sessions that are configured and were never established."""
    late_ns: int
    """The longest that the machine made a process wait meanwhile. Times may be that much late."""


@cache
def _answers() -> TypeAdapter[tuple[RouteRecording, ...]]:
    from pydantic import TypeAdapter

    return TypeAdapter(tuple[RouteRecording, ...])


@cache
def _document() -> TypeAdapter[RouteRecording]:
    from pydantic import TypeAdapter  # takes longer than all that a lab's owner does

    return TypeAdapter(RouteRecording)


def write_recording(recording: RouteRecording, path: Path) -> None:
    """Writes a recording, in one step. Raises OSError, EmuError."""
    write_text(path, _document().dump_json(recording).decode())


def read_recording(path: Path) -> RouteRecording:
    """Raises UsageError: there is none, or it is not a recording."""
    try:
        version = path.stat().st_mtime_ns
    except OSError as error:
        raise UsageError(f"{path}: cannot be read as recorded routes: {error.strerror}") from None
    return _read(path, version)


@lru_cache(maxsize=8)
def _read(path: Path, version: int) -> RouteRecording:
    """`version` changes with the file."""
    try:
        recording = _document().validate_json(path.read_bytes())
        _refuse_impossible(recording)
    except (OSError, ValueError):
        raise UsageError(
            f"{path}: is not a file of recorded routes; leave recorded_routes out, and emu records "
            "them"
        ) from None
    return recording


def _refuse_impossible(recording: RouteRecording) -> None:
    """Raises ValueError for what no recorder writes."""
    times = [change.at_ns for change in recording.changes]
    if times != sorted(times) or any(at_ns < 0 for at_ns in times):
        raise ValueError("times")
    if recording.confs.keys() != recording.first.keys():
        raise ValueError("switches")
    for fib in (*recording.first.values(), *(change.fib for change in recording.changes)):
        for prefix in fib:
            IPv4Network(prefix)


def write_recordings(recordings: Sequence[RouteRecording], path: Path) -> None:
    """Writes several recordings into one file, in one step. Raises OSError, EmuError."""
    write_text(path, _answers().dump_json(tuple(recordings)).decode())


def read_recordings(path: Path) -> tuple[RouteRecording, ...]:
    """Raises OSError, or ValueError: the file has something else."""
    recordings = _answers().validate_json(path.read_bytes())
    for recording in recordings:
        _refuse_impossible(recording)
    return recordings


def in_a_run(recording: RouteRecording, at_ns: int, before: LinkEvent | None) -> RouteRecording:
    """The recording of one event as that of a run, in which the event happens at `at_ns`. `before`:
    the state of the links from the start of the run on; None: all are up."""
    (event,) = recording.events
    earlier = () if before is None else (before._replace(at_ns=0),)
    holds_until_ns = recording.holds_until_ns
    return recording._replace(
        events=(*earlier, event._replace(at_ns=at_ns)),
        changes=tuple(own._replace(at_ns=own.at_ns + at_ns) for own in recording.changes),
        sessions=tuple(own._replace(at_ns=own.at_ns + at_ns) for own in recording.sessions),
        holds_until_ns=None if holds_until_ns is None else holds_until_ns + at_ns,
    )
