"""`python -m emu.lab.init FD`: the first process of a lab, pid 1 of its namespaces.

It mounts the lab's own /run, does one job, and ends. The lab ends with it.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import emu.quick_imports  # noqa: F401 - what follows takes less time
from emu.daemon.serve import serve_lab
from emu.errors import EmuError, ExitCode
from emu.lab.command import run
from emu.lab.fork_server import ForkServer
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.jobs import (
    Job,
    OpenShell,
    RecordAnswers,
    RecordRoutes,
    RunExact,
    RunMininet,
    RunTraffic,
    ServeLab,
)
from emu.lab.ipc.messages import Failure, Started
from emu.lab.mininet_command import run_mininet
from emu.lab.mounts import mount
from emu.lab.namespace import PRIVATE
from emu.lab.session import JobResult, run_exact, run_session
from emu.lab.shell import run_shell
from emu.lab.supervisor import Supervisor
from emu.resources import exhausted_resource
from emu.streams import guard_streams

_SHARED_MEMORY = Path("/dev/shm")
Handler = Callable[[Any, Supervisor], JobResult]
"""A function that does a job. It returns a message and open files."""


def main(handlers: Mapping[type[Job[Any]], Handler]) -> None:
    """Receives a job from the lab's owner, does it, and ends the lab."""
    fork_server = ForkServer.start(int(sys.argv[-1]))
    for number in (signal.SIGINT, signal.SIGTERM):  # pid 1 ignores signals without a handler
        signal.signal(number, signal.default_int_handler)
    owner = Channel.inherited(int(sys.argv[-1]))
    job, files = _accept(owner)
    guard_streams()
    supervisor = Supervisor(owner, files, fork_server)
    try:
        make_private()
        result, result_files = handlers[type(job)](job, supervisor)
    except EOFError:
        supervisor.wait_for_the_end()
    except KeyboardInterrupt:
        os._exit(ExitCode.INTERRUPTED)
    except Exception as error:
        if not isinstance(error, EmuError) and not exhausted_resource(error):
            traceback.print_exc()
        owner.send(Failure.of(error))
        os._exit(ExitCode.FAILED)
    sys.stdout.flush()
    supervisor.end_job(result, result_files)
    os._exit(ExitCode.OK)


def _record_routes(job: RecordRoutes, supervisor: Supervisor) -> JobResult:
    from emu.lab.frr.record import record_routes  # takes time, and other jobs need none of it

    return record_routes(job, supervisor)


def _record_answers(job: RecordAnswers, supervisor: Supervisor) -> JobResult:
    from emu.lab.frr.record import record_answers  # as above

    return record_answers(job, supervisor)


def _accept(owner: Channel) -> tuple[Job[Any], list[int]]:
    """The job from the owner, and its open files. Ends the lab if the owner is gone already."""
    try:
        job: Job[Any] = owner.expect(Job)
        stderr, *files = owner.take_files()
        os.dup2(stderr, sys.stderr.fileno())
        owner.send(Started())
    except EOFError:
        os._exit(ExitCode.INTERRUPTED)
    return job, files


def make_private() -> None:
    """Gives the lab its own /run, and its own /dev/shm: libfaketime and others leave files there,
    named after process ids, of which every lab has the same."""
    run(["mount", "-n", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(PRIVATE)])
    if _SHARED_MEMORY.is_dir():
        mount("tmpfs", str(_SHARED_MEMORY), kind="tmpfs", options="mode=1777")


if __name__ == "__main__":
    main(
        {
            RunTraffic: run_session,
            RunExact: run_exact,
            RecordRoutes: _record_routes,
            RecordAnswers: _record_answers,
            OpenShell: run_shell,
            ServeLab: serve_lab,
            RunMininet: run_mininet,
        }
    )
