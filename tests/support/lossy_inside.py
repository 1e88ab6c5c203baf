"""The first process of a lab on the exact clock that loses frames: a command runs in one of its
namespaces before the traffic starts.

`python -m tests.support.lossy_inside FD`, with the namespace and the command in EMU_TEST_LOSES.
With EMU_TEST_OTHER_SECONDS, a frame that is late by a second is lost.
The frames of the NICs pass the queueing disciplines of their interfaces, which they otherwise
bypass.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from pathlib import Path

from emu.lab import session as steps
from emu.lab.init import main
from emu.lab.ipc.jobs import RunExact
from emu.lab.netns import entered
from emu.lab.session import JobResult, Programs, Session
from emu.lab.supervisor import Supervisor
from tests.support.impatient_part import OTHER_SECONDS, PROGRAMS

LOSES = "EMU_TEST_LOSES"
_PIDFD_GETFD = 438
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20


def run(job: RunExact, supervisor: Supervisor) -> JobResult:
    namespace, *command = os.environ[LOSES].split()
    start = steps.start

    def start_lossy(session: Session) -> int:
        assert session.nics is not None
        _pass_qdiscs(session.nics.pid)
        with entered(session.lab.pids[namespace]):
            subprocess.run(command, check=True)
        return start(session)

    steps.start = start_lossy
    programs = PROGRAMS if OTHER_SECONDS in os.environ else Programs()
    return steps.run_exact(job, supervisor, programs)


def _pass_qdiscs(pid: int) -> None:
    """Changes an option of all packet sockets of a process."""
    process = os.pidfd_open(pid)
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        if not str(entry.readlink()).startswith("socket:"):
            continue
        copy = ctypes.CDLL(None).syscall(_PIDFD_GETFD, process, int(entry.name), 0)
        with socket.socket(fileno=copy) as opened:
            if opened.family == socket.AF_PACKET:
                opened.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 0)
    os.close(process)


if __name__ == "__main__":
    main({RunExact: run})
