"""Processes of the tests end with the tests, even if the tests are killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.reaper import reaping
from tests.support.user import ROOT, SECONDS

_SESSION = """
import os, signal, subprocess, sys
from pathlib import Path
from tests.support.reaper import reaping
folder = Path(sys.argv[1])
with reaping(folder):
    home = os.environ | {"HOME": str(folder / "test" / "home")}
    left = subprocess.Popen(["sleep", "600"], env=home, stdout=2, start_new_session=True)
    print(left.pid, flush=True)
    signal.pause()
"""


def test_reaper_ends_the_processes_of_a_killed_session(tmp_path: Path) -> None:
    """Also those in other sessions, but no process of others."""
    elsewhere = os.environ | {"HOME": f"{tmp_path}-2/home"}
    command = [sys.executable, "-c", _SESSION, str(tmp_path)]
    with (
        subprocess.Popen(["sleep", "600"], env=elsewhere) as other,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as session,
    ):
        assert session.stdout is not None
        left = os.pidfd_open(int(session.stdout.readline()))
        session.send_signal(signal.SIGKILL)
        try:
            assert select.select([left], [], [], SECONDS)[0], "the process goes on"
        finally:
            os.close(left)
        assert other.poll() is None
        other.kill()


def test_reaper_ends_what_remains_at_the_end(tmp_path: Path) -> None:
    home = os.environ | {"HOME": str(tmp_path / "home")}
    with reaping(tmp_path):
        left = subprocess.Popen(["sleep", "600"], env=home)
    assert left.wait(SECONDS) == -signal.SIGKILL
