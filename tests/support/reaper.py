"""`python -m tests.support.reaper FOLDER`: ends what a test session has left behind.

A session that is killed ends none of its labs, and those that `emu up` has brought up belong to
nobody else. So this process waits, in a session of its own, for the end of its standard input,
which comes with the end of the tests, whatever that was. Then it kills everybody whose home is in
FOLDER, where nobody but the tests makes homes. A lab ends with its owner.
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
    """Whoever has a home in the folder goes with the body, or with this process."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.reaper", str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a signal for all of the tests is not for it
    ):
        yield


def reap(folder: Path) -> None:
    """Returns when nobody is left; some may have started others meanwhile."""
    while sum(_kill(process, folder) for process in Path("/proc").iterdir()):
        pass


def _kill(process: Path, folder: Path) -> bool:
    """Kills it, if its home is in the folder. False: it is not, or it is gone."""
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
