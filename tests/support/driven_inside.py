"""The first process of a real lab in which a test sends frames and runs commands during traffic.

`python -m tests.support.driven_inside FD`
"""

from __future__ import annotations

import socket
import subprocess

from emu.lab.init import main
from emu.lab.ipc.messages import Done, Progress
from emu.lab.lab_plan import LabRequest
from emu.lab.netns import entered
from emu.lab.processes import wait_for
from emu.lab.session import JobResult, Session, open_session, start, stop
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import spec_from_json
from tests.support.driven_job import Drive, DrivenResult


def drive(job: Drive, supervisor: Supervisor) -> JobResult:
    request = LabRequest(spec_from_json(job.spec), job.out, job.slowdown, workload=True)
    session = open_session(request, supervisor)
    assert session.rnic is not None
    output: list[str] = []

    def act(progress: Progress) -> None:
        if output or not progress.moment or not progress.moment.bytes_done:
            return
        for host, frame in job.frames:
            _send(session, host, bytes.fromhex(frame))
        output.extend(_run(session, *command) for command in job.commands)
        output.append("done")

    start(session)
    wait_for(session.rnic, Done, act)
    result = DrivenResult(stop(session.shim).captures, tuple(output))
    return result, [*session.shim.take_files(), *session.rnic.take_files()]


def _send(session: Session, host: str, frame: bytes) -> None:
    """Sends a frame by the host's NIC."""
    with entered(session.lab.pids[host]):
        by = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        by.bind((f"{host}-eth0", 0))
    with by:
        by.send(frame)


def _run(session: Session, host: str, *command: str) -> str:
    """The output of a command on a host."""
    with entered(session.lab.pids[host]):
        done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr


if __name__ == "__main__":
    main({Drive: drive})
