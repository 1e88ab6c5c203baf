"""The first process of a lab on the exact clock that loses frames: a command runs in one of its
namespaces before the traffic starts.

`python -m tests.support.lossy_inside FD`, with the namespace and the command in EMU_TEST_LOSES.
"""

from __future__ import annotations

import os
import subprocess

from emu.lab import session as steps
from emu.lab.init import main
from emu.lab.ipc.jobs import RunExact
from emu.lab.netns import entered
from emu.lab.session import JobResult, Session
from emu.lab.supervisor import Supervisor

LOSES = "EMU_TEST_LOSES"


def run(job: RunExact, supervisor: Supervisor) -> JobResult:
    namespace, *command = os.environ[LOSES].split()
    start = steps.start

    def start_lossy(session: Session) -> int:
        with entered(session.lab.pids[namespace]):
            subprocess.run(command, check=True)
        return start(session)

    steps.start = start_lossy
    return steps.run_exact(job, supervisor)


if __name__ == "__main__":
    main({RunExact: run})
