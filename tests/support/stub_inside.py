"""The first process of a lab whose shim and NICs are stubs, with the jobs that the tests need.

`python -m tests.support.stub_inside FD`
"""

from __future__ import annotations

import os
import subprocess
import sys

from emu.errors import FabricError
from emu.lab.init import main
from emu.lab.ipc.messages import Progress, Request
from emu.lab.netns import entered
from emu.lab.session import JobResult, Programs, Session, open_session, run_session, start
from emu.lab.shell import FabricPrompt
from emu.lab.supervisor import Supervisor

PROGRAMS = Programs(
    shim=(sys.executable, "-m", "tests.support.stub_shim"),
    rnic=(sys.executable, "-m", "tests.support.stub_nics"),
)


def run(request: Request, supervisor: Supervisor) -> JobResult:
    """The job of a real run, with stubs."""
    return run_session(request, supervisor, PROGRAMS)


def idle(request: Request, supervisor: Supervisor) -> JobResult:
    """Builds the lab, says so, and waits until it is ended. One host's shell has started."""
    _open(request, supervisor).lab.net["h3"].cmd("true")
    supervisor.progress(Progress("idle"))
    supervisor.wait_for_the_end()
    return {}, []


def whole(request: Request, supervisor: Supervisor) -> JobResult:
    """The same commands in a lab with the real shim."""
    session = open_session(request, supervisor, with_rnic=False)
    start(session)
    return _outputs(session, request)


def commands(request: Request, supervisor: Supervisor) -> JobResult:
    """Builds the lab and runs commands: [namespace, word, ...] each; what they print."""
    return _outputs(_open(request, supervisor), request)


def _no_tap(port: str) -> int:
    raise FabricError("the stand-in of a shim has no taps")


def prompt(request: Request, supervisor: Supervisor) -> JobResult:
    """Mininet's prompt."""
    session = _open(request, supervisor)
    FabricPrompt(session.lab.net, session.spec, dict, _no_tap)
    return {}, []


def crash(request: Request, supervisor: Supervisor) -> JobResult:
    raise ZeroDivisionError("on purpose")


def _open(request: Request, supervisor: Supervisor) -> Session:
    session = open_session(request, supervisor, with_rnic=True, programs=PROGRAMS)
    start(session)
    return session


def _outputs(session: Session, request: Request) -> JobResult:
    output = [_output(session, *command) for command in request.options["commands"]]
    return {"marker": session.marker, "notes": session.notes, "output": output}, []


def _output(session: Session, namespace: str, *command: str) -> str:
    with entered(session.lab.pids[namespace]):
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    return done.stdout + done.stderr


if __name__ == "__main__":
    jobs = (run, idle, whole, commands, prompt, crash)
    main({job.__name__: job for job in jobs})
