"""A lab in the background, for tests: its owner process, and a check that nothing of it remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.traces import Inside, Outside
from tests.support.user import NOBODY, User, may_be_anybody, wait

OWNER = "emu.daemon.daemon_main"


def at_home(user: User) -> User:
    """The same user with a runtime folder in the home folder."""
    runtime = user.home / "runtime"
    runtime.mkdir()
    if may_be_anybody():
        is_root = not any(word.startswith("--reuid") for word in user.prefix)
        os.chown(runtime, 0 if is_root else NOBODY, user.group)
    return replace(user, environment=user.environment | {"XDG_RUNTIME_DIR": str(runtime)})


@contextmanager
def lab_up(user: User, spec: str, *words: str) -> Iterator[Inside]:
    """Brings up a lab of this spec; afterwards ends it, unless the body has, and checks that
    nothing of it remains."""
    before = Outside.now(user)
    path = user.home.parent / "standing.emu.yml"
    path.write_text(spec)
    up = user.run_emu("up", path, *words)
    assert up.code == 0, up.err
    inside = Inside(owner_of_lab(user))
    try:
        yield inside
    finally:
        down = user.run_emu("down")
    if down.code == 0:
        assert_gone(inside)
    left = Outside.now(user)
    assert left == before, f"left: {left}, before: {before}"


def assert_gone(inside: Inside) -> None:
    """Checks that the lab has ended and that no process remains in it."""
    inside.wait_for_end()
    left = inside.left()
    assert left == [], f"left: {left}"


def owner_of_lab(user: User) -> int:
    """The process that owns the one lab of this user."""
    (pid,) = (int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _owns(p, user))
    return pid


def _owns(process: Path, user: User) -> bool:
    try:
        command = (process / "cmdline").read_text().split("\0")
        runtime = f"XDG_RUNTIME_DIR={user.environment['XDG_RUNTIME_DIR']}"
        return OWNER in command and runtime in (process / "environ").read_text().split("\0")
    except OSError:
        return False


def status_of(user: User) -> list[dict[str, Any]]:
    """The status of all labs of the user."""
    ended = user.run_emu("status", "--json")
    assert ended.code == 0, ended.err
    labs: list[dict[str, Any]] = json.loads(ended.out)["labs"]
    return labs


def watch_events(user: User) -> subprocess.Popen[bytes]:
    """Starts `emu events` for the user's one lab and waits until it listens."""
    watching = user.emu("events")
    assert watching.stderr is not None
    said = watching.stderr.readline()
    assert said.startswith(b"printing the events of "), said + wait(watching).err.encode()
    return watching


def faults_of(user: User) -> list[dict[str, Any]]:
    """The faults of the user's one lab."""
    ended = user.run_emu("fault", "list")
    assert ended.code == 0, ended.err
    return list(map(json.loads, ended.out.splitlines()))


@contextmanager
def capturing(user: User, port: str, file: Path) -> Iterator[None]:
    """The frames of the cable at a port, while the body runs, are in this file afterwards."""
    capture = user.emu("capture", port)
    assert capture.stdout is not None
    head = capture.stdout.read(4)  # it captures from now on
    try:
        yield
    finally:
        capture.send_signal(signal.SIGINT)
        rest, _ = capture.communicate()
    file.write_bytes(head + rest)
