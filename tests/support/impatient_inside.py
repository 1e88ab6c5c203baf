"""The first process of a lab on the exact clock in which one process is stopped at the start.

The others wait for it for one second.

`python -m tests.support.impatient_inside FD`, with `shim` or `nics` in EMU_TEST_STOPS.
"""

from __future__ import annotations

import os
import signal
import sys

from emu.lab import session as steps
from emu.lab.init import main
from emu.lab.ipc.jobs import RunExact
from emu.lab.session import JobResult, Programs, Session
from emu.lab.supervisor import Supervisor

STOPS = "EMU_TEST_STOPS"
_MODULE = "tests.support.impatient_part"


def run(job: RunExact, supervisor: Supervisor) -> JobResult:
    start = steps.start

    def start_and_stop(session: Session) -> int:
        os.kill(session.workers[os.environ[STOPS]], signal.SIGSTOP)
        return start(session)

    steps.start = start_and_stop
    programs = Programs(
        shim=(sys.executable, "-m", _MODULE, "emu.lab.shim_main"),
        rnic=(sys.executable, "-m", _MODULE, "emu.lab.rnic_main"),
    )
    return steps.run_exact(job, supervisor, programs)


if __name__ == "__main__":
    main({RunExact: run})
