"""The first process of a lab on the exact clock in which one process is stopped at the start.

The others wait for it for one second.

`python -m tests.support.impatient_inside FD`, with `shim` or `nics` in EMU_TEST_STOPS.
"""

from __future__ import annotations

import os
import signal

from emu.lab import session as steps
from emu.lab.init import main
from emu.lab.ipc.jobs import RunExact
from emu.lab.session import JobResult, Session
from emu.lab.supervisor import Supervisor
from tests.support.impatient_part import PROGRAMS

STOPS = "EMU_TEST_STOPS"


def run(job: RunExact, supervisor: Supervisor) -> JobResult:
    start = steps.start

    def start_and_stop(session: Session) -> int:
        os.kill(session.workers[os.environ[STOPS]], signal.SIGSTOP)
        return start(session)

    steps.start = start_and_stop
    return steps.run_exact(job, supervisor, PROGRAMS)


if __name__ == "__main__":
    main({RunExact: run})
