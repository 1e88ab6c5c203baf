"""Runs a program in a node of a standing lab, as a child of the caller's, on the caller's terminal.

The lab hands out its namespaces as open files; we enter them and start the program
there. So Ctrl-C, pipes and exit codes are as with any program, and a lab that ends
takes it along, since it is in the lab's pid namespace.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from emu.daemon.client import LabClient
from emu.daemon.messages import GetNamespaces
from emu.errors import ExitCode
from emu.lab.netns import enter

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""As shells have them."""


def run_there(
    lab: LabClient,
    node: str | None,
    command: Sequence[str],
    settings: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Its exit code; 128 and the signal when it was ended by one. None: in no node, in the lab.

    `settings` are added to its environment. Raises UsageError when there is no such node.
    When the lab has ended and taken it along, stderr is told.
    """
    there, namespaces = lab.ask(GetNamespaces(node))
    environment = {**os.environ, **there.environment, **settings}
    code = _in_a_child(lambda: _run(namespaces, command, environment))
    if code == 128 + signal.SIGKILL and (ended := lab.why_ended()):
        print(ended, file=sys.stderr)
    return code


def tasks_of(lab: LabClient) -> dict[str, int]:
    """Every node -> a process in its namespaces."""
    there, namespaces = lab.ask(GetNamespaces())
    for namespace in namespaces:
        os.close(namespace)
    return there.tasks


def _run(namespaces: Sequence[int], command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Moves the calling process, which must have one thread, into the lab for good.

    It stays outside of a pid namespace that it enters; its children are inside.
    """
    folder = Path.cwd()
    for namespace in namespaces:
        if not _is_ours(namespace):
            enter(namespace)
    return _in_a_child(lambda: _become(command, environment, folder))


def _in_a_child(work: Callable[[], int]) -> int:
    """Does the work in a child process, which has one thread; its exit code."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        except Exception:
            traceback.print_exc()
        os._exit(ExitCode.FAILED)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the program
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGINT, before)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _is_ours(namespace: int) -> bool:
    """Root's labs are in root's own user namespace, which cannot be entered again."""
    with Path("/proc/self/ns/user").open() as user:
        return os.path.sameopenfile(namespace, user.fileno())


def _become(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
    """Does not return, unless the program cannot be started: with the exit code for that."""
    with suppress(OSError):
        os.chdir(folder)
    try:
        os.execvpe(command[0], list(command), environment)
    except FileNotFoundError:
        print(f"the program {command[0]} is not installed", file=sys.stderr)
        return _NOT_FOUND
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return _NOT_EXECUTABLE
