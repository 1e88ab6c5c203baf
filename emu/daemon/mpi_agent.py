"""`python -m emu.daemon.mpi_agent HOST COMMAND...`: runs a command on another host of the lab.

It replaces ssh for Open MPI: a shell on that host runs the words of the command as one line.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from emu.lab.netns import enter
from emu.lab.rdma_sysfs import view

TASKS = "EMU_TASKS"
"""The environment variable with a process or thread on every host, as JSON."""
TREES = "EMU_SYSFS"
"""The environment variable with the folder of every host's sysfs, as JSON."""


def named(host: str, command: Sequence[str]) -> list[str]:
    """The command that runs `command` under the host's name, in a UTS namespace of its own."""
    script = f"hostname {host} && exec {shlex.join(command)}"
    return ["unshare", "--uts", "sh", "-c", script]


def main() -> None:
    host, *words = sys.argv[1:]
    _enter(json.loads(os.environ[TASKS])[host])
    view.show_or_explain(host, Path(json.loads(os.environ[TREES])[host]))
    command = named(host, ["sh", "-c", " ".join(words)])
    os.execvp(command[0], command)


def _enter(task: int) -> None:
    """Enters the namespaces of another host and stays in the working folder."""
    folder = Path.cwd()
    with ExitStack() as opened:
        kinds = [Path(f"/proc/{task}/ns/{kind}") for kind in ("net", "mnt")]
        for namespace in [opened.enter_context(path.open()) for path in kinds]:
            enter(namespace.fileno())
    with suppress(OSError):
        os.chdir(folder)


if __name__ == "__main__":
    main()
