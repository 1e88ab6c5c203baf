"""`python -m emu.daemon.mpi_agent HOST COMMAND...`: runs it on another host of the lab.

As ssh would, for Open MPI: the words of the command are one line for a shell there.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence

TASKS = "EMU_TASKS"
"""The environment's word for a process or thread on every host, as JSON."""


def named(host: str, command: Sequence[str]) -> list[str]:
    """The command in a namespace in which the machine has the host's name."""
    script = f"hostname {host} && exec {shlex.join(command)}"
    return ["unshare", "--uts", "sh", "-c", script]


def main() -> None:
    host, *words = sys.argv[1:]
    task = json.loads(os.environ[TASKS])[host]
    there = ["mnexec", "-a", str(task), *named(host, ["sh", "-c", " ".join(words)])]
    os.execvp(there[0], there)


if __name__ == "__main__":
    main()
