"""`python -m emu.lab.init FD`: the first process of a lab, pid 1 of its namespaces.

It makes the lab private, does one job, and ends; with it ends everything.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from emu.daemon.serve import serve_lab
from emu.errors import EmuError, ExitCode
from emu.lab.command import run
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.jobs import Job, OpenShell, RunMininet, RunTraffic, ServeLab
from emu.lab.ipc.messages import Failure, Started
from emu.lab.mininet_command import run_mininet
from emu.lab.namespace import PRIVATE
from emu.lab.session import JobResult, run_session
from emu.lab.shell import run_shell
from emu.lab.supervisor import Supervisor
from emu.resources import lacking
from emu.streams import guard_streams

Handler = Callable[[Any, Supervisor], JobResult]
"""Does a job. The result is a message, with open files."""


def main(handlers: Mapping[type[Job[Any]], Handler]) -> None:
    """Does the job that the lab's owner asks for, and ends the lab."""
    for number in (signal.SIGINT, signal.SIGTERM):  # pid 1 ignores what it has no handler for
        signal.signal(number, signal.default_int_handler)
    owner = Channel.inherited(int(sys.argv[-1]))
    job, handed = _accept(owner)
    guard_streams()
    supervisor = Supervisor(owner, handed)
    try:
        make_private()
        result, files = handlers[type(job)](job, supervisor)
    except EOFError:
        supervisor.wait_for_the_end()
    except KeyboardInterrupt:
        os._exit(ExitCode.INTERRUPTED)
    except Exception as error:
        if not isinstance(error, EmuError) and not lacking(error):
            traceback.print_exc()
        owner.send(Failure.of(error))
        os._exit(ExitCode.FAILED)
    owner.send(result, files)
    sys.stdout.flush()
    supervisor.end_all()
    os._exit(ExitCode.OK)


def _accept(owner: Channel) -> tuple[Job[Any], list[int]]:
    """The owner's job and the files for it. Ends the lab if the owner is gone already."""
    try:
        job: Job[Any] = owner.expect(Job)
        stderr, *handed = owner.take_files()
        os.dup2(stderr, sys.stderr.fileno())
        owner.send(Started())
    except EOFError:
        os._exit(ExitCode.INTERRUPTED)
    return job, handed


def make_private() -> None:
    """Gives the lab its own /run."""
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(PRIVATE)])


if __name__ == "__main__":
    main(
        {
            RunTraffic: run_session,
            OpenShell: run_shell,
            ServeLab: serve_lab,
            RunMininet: run_mininet,
        }
    )
