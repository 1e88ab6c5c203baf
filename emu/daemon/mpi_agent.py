"""`python -m emu.daemon.mpi_agent HOST COMMAND...`: runs a command on another host of the lab.

It replaces ssh for Open MPI: a shell on that host runs the words of the command as one line.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence

TASKS = "EMU_TASKS"
"""The environment variable with a process or thread on every host, as JSON."""


def named(host: str, command: Sequence[str]) -> list[str]:
    """The command that runs `command` under the host's name, in a UTS namespace of its own."""
    script = f"hostname {host} && exec {shlex.join(command)}"
    return ["unshare", "--uts", "sh", "-c", script]


def main() -> None:
    host, *words = sys.argv[1:]
    task = json.loads(os.environ[TASKS])[host]
    command = ["mnexec", "-a", str(task), *named(host, ["sh", "-c", " ".join(words)])]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
