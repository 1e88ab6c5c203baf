"""`python -m tests.support.reaper FOLDER`: ends the processes that a test session leaves behind.

A killed session ends none of its labs, and those of `emu up` have no other owner. So this process
runs in a session of its own and waits for the end of its standard input, which comes with the end
of the tests in any case. Then it kills every process whose HOME is in FOLDER, where only the tests
make homes. A lab ends with its owner.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.user import ROOT


@contextmanager
def reaping(folder: Path) -> Iterator[None]:
    """Runs the body, and ends every process with a home in the folder afterwards, or when this
    process dies."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.reaper", str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # signals to the session of the tests do not reach it
    ):
        yield


def reap(folder: Path) -> None:
    """Kills until no process is left, because some can start others meanwhile."""
    while sum(_kill(process, folder) for process in Path("/proc").iterdir()):
        pass


def _kill(process: Path, folder: Path) -> bool:
    """Kills the process if its home is in the folder. False: the home is elsewhere, or the process
    has ended."""
    if not process.name.isdigit():
        return False
    with suppress(OSError):
        end = os.pidfd_open(int(process.name))
        try:
            if _has_home_in(folder, process):
                signal.pidfd_send_signal(end, signal.SIGKILL)
                return True
        finally:
            os.close(end)
    return False


def _has_home_in(folder: Path, process: Path) -> bool:
    words = (process / "environ").read_bytes().split(b"\0")
    return any(word.startswith(b"HOME=" + os.fsencode(folder) + b"/") for word in words)


if __name__ == "__main__":
    sys.stdin.read()
    reap(Path(sys.argv[1]))
