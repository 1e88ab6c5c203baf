"""The first process of a lab whose shim and NICs are stubs, with the jobs of the tests.

`python -m tests.support.stub_inside FD`
"""

from __future__ import annotations

import os
import subprocess
import sys

from emu.errors import FabricError
from emu.lab.init import main
from emu.lab.ipc.jobs import RunTraffic
from emu.lab.ipc.messages import Done, Progress
from emu.lab.ipc.queries import PortsSnapshot
from emu.lab.lab_plan import LabRequest
from emu.lab.netns import entered
from emu.lab.session import JobResult, Programs, Session, open_session, run_session, start
from emu.lab.shell import FabricPrompt
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import spec_from_json
from tests.support.stub_jobs import Crash, Idle, Outputs, Prompt, RunCommands, RunStubs


def programs(rnic_fails: str = "") -> Programs:
    return Programs(
        shim=(sys.executable, "-m", "tests.support.stub_shim"),
        rnic=(sys.executable, "-m", "tests.support.stub_nics", rnic_fails),
    )


def run(job: RunStubs, supervisor: Supervisor) -> JobResult:
    real = RunTraffic(job.spec, job.out, job.slowdown)
    return run_session(real, supervisor, programs(job.rnic_fails))


def idle(job: Idle, supervisor: Supervisor) -> JobResult:
    """Starts a shell on one host, and waits."""
    _open(job, supervisor).lab.net["h3"].cmd("true")
    supervisor.progress(Progress("idle"))
    supervisor.wait_for_the_end()
    return Done(), []


def commands(job: RunCommands, supervisor: Supervisor) -> JobResult:
    session = _open_real(job, supervisor) if job.real_shim else _open(job, supervisor)
    output = tuple(_output(session, *command) for command in job.commands)
    return Outputs(session.marker, session.notes, output), []


def _no_tap(port: str) -> int:
    raise FabricError("the stand-in of a shim has no taps")


def _no_ports() -> PortsSnapshot:
    return PortsSnapshot(0, {})


def prompt(job: Prompt, supervisor: Supervisor) -> JobResult:
    session = _open(job, supervisor)
    FabricPrompt(session.lab.net, session.spec, _no_ports, _no_tap)
    return Done(), []


def crash(job: Crash, supervisor: Supervisor) -> JobResult:
    raise ZeroDivisionError("on purpose")


def _open(job: Idle | RunCommands | Prompt, supervisor: Supervisor) -> Session:
    request = LabRequest(spec_from_json(job.spec), job.out, job.slowdown, workload=True)
    session = open_session(request, supervisor, programs())
    start(session)
    return session


def _open_real(job: RunCommands, supervisor: Supervisor) -> Session:
    request = LabRequest(spec_from_json(job.spec), job.out, job.slowdown, workload=False)
    session = open_session(request, supervisor)
    start(session)
    return session


def _output(session: Session, namespace: str, *command: str) -> str:
    with entered(session.lab.pids[namespace]):
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    return done.stdout + done.stderr


if __name__ == "__main__":
    main({RunStubs: run, Idle: idle, RunCommands: commands, Prompt: prompt, Crash: crash})
