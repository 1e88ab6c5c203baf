"""The first process of a lab whose shim and NICs are stubs, with the jobs that the tests need.

`python -m tests.lab.stub_inside FD`
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from emu.lab.inside import main
from emu.lab.messages import Json, Request
from emu.lab.netns import entered
from emu.lab.session import Programs, Session, open_session, run_session, start
from emu.lab.shell import FabricPrompt
from emu.lab.supervisor import Supervisor

PROGRAMS = Programs(
    shim=(sys.executable, "-m", "tests.lab.stub_shim"),
    rnic=(sys.executable, "-m", "tests.lab.stub_rnic"),
)


def run(request: Request, supervisor: Supervisor) -> Json:
    """The job of a real run, with stubs."""
    return run_session(request, supervisor, PROGRAMS)


def idle(request: Request, supervisor: Supervisor) -> Json:
    """Builds the lab, tells every process in it, and waits until it is ended."""
    _open(request, supervisor)
    supervisor.progress(1.0, json.dumps(_processes()))
    supervisor.wait_for_the_end()
    return {}


def commands(request: Request, supervisor: Supervisor) -> Json:
    """Builds the lab and runs commands: [namespace, word, ...] each; what they print."""
    session = _open(request, supervisor)
    return {
        "marker": session.marker,
        "notes": session.notes,
        "output": [_output(session, *command) for command in request.options["commands"]],
    }


def prompt(request: Request, supervisor: Supervisor) -> Json:
    """Mininet's prompt."""
    FabricPrompt(_open(request, supervisor).lab.net)
    return {}


def crash(request: Request, supervisor: Supervisor) -> Json:
    raise ZeroDivisionError("on purpose")


def _open(request: Request, supervisor: Supervisor) -> Session:
    session = open_session(request, supervisor, with_rnic=True, programs=PROGRAMS)
    start(session)
    return session


def _processes() -> dict[str, int]:
    """Command -> pid, of every process of the lab."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "): pid for pid in pids}


def _output(session: Session, namespace: str, *command: str) -> str:
    with entered(session.lab.pids[namespace]):
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    return done.stdout + done.stderr


if __name__ == "__main__":
    main({"run": run, "idle": idle, "commands": commands, "prompt": prompt, "crash": crash})
