"""Runs a program in a node of a background lab, as a child process on the caller's terminal.

The lab sends its namespaces as open files; a child process enters them and starts the program. So
Ctrl-C, pipes and exit codes work as with any program. The program gets the signals that ask this
process to end. It ends with the lab, because it is in the lab's pid namespace, and with this
process, however that ends.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from emu.daemon.client import LabClient
from emu.daemon.messages import GetNamespaces, ShowRdmaSysfs
from emu.daemon.verbs_socket import PLACE, VARIABLE
from emu.errors import ExitCode
from emu.lab.libc import LIBC, checked
from emu.lab.mounts import show_elsewhere
from emu.lab.netns import enter
from emu.lab.rdma_sysfs import view
from emu.lab.rdma_sysfs.place import tree_of

_VERBS_LIBRARY = Path(__file__).parents[1] / "verbs/emu_verbs.so"
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""The exit codes that shells use."""
_AWAITED = (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_OUTSIDE = 0
"""The parent's pid in a namespace that has no number for it."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def run_in_namespaces(
    lab: LabClient,
    node: str | None,
    command: Sequence[str],
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    rdma: bool = True,
    management: bool = False,
) -> int:
    """Runs a command and returns its exit code, or 128 plus the number of the signal that ended it.

    `node` None: the lab's own namespaces. With `management`, those of the node's agent. `settings`
    are added to the environment. With `rdma`, a command on a host sees its NIC in /sys. If the
    lab's end has ended the command, prints the reason to stderr. Raises UsageError if there is no
    such node.
    """
    answer, namespaces = lab.ask(GetNamespaces(node, management))
    environment = {**os.environ, **answer.environment, **settings}
    host = node if rdma and not management and node in answer.tasks else None
    if host and "LD_PRELOAD" not in settings:  # both libraries would be the program's clock
        preloaded = filter(None, (str(_VERBS_LIBRARY), environment.get("LD_PRELOAD")))
        environment["LD_PRELOAD"] = " ".join(preloaded)
        environment[VARIABLE] = str(PLACE)
    with nics_in_sysfs(lab, [host] if host else []):
        code = _in_a_child(lambda: _run(namespaces, command, environment, host, answer.places))
    if code == 128 + signal.SIGKILL and (ended := lab.why_ended()):
        print(ended, file=sys.stderr)
    return code


@contextmanager
def nics_in_sysfs(lab: LabClient, hosts: Sequence[str]) -> Iterator[None]:
    """Keeps the NIC's files of hosts up to date during the body, and for programs that it starts
    and that outlive it."""
    files = lab.ask(ShowRdmaSysfs(tuple(hosts)))[1] if hosts else []
    for file in files:
        os.set_inheritable(file, True)
    try:
        yield
    finally:
        for file in files:
            os.close(file)


def tasks_of(lab: LabClient) -> dict[str, int]:
    """Every host -> a process or thread in its namespaces; also the lab's own."""
    answer, namespaces = lab.ask(GetNamespaces())
    for namespace in namespaces:
        os.close(namespace)
    return answer.tasks


def _run(
    namespaces: Sequence[int],
    command: Sequence[str],
    environment: Mapping[str, str],
    host: str | None,
    places: Mapping[str, str],
) -> int:
    """Moves the calling process, which must have one thread, into the lab, and runs a command.
    `host`: whose NIC it sees in /sys. `places`: what it finds at other places.

    The process itself stays outside the pid namespace that it enters; its children are inside.
    """
    folder, parent = Path.cwd(), os.getppid()
    for namespace in namespaces:
        if not _is_ours(namespace):
            enter(namespace)
    _end_with(parent)
    return _in_a_child(lambda: _become(command, environment, folder, host, places))


def _in_a_child(work: Callable[[], int]) -> int:
    """Runs `work` in a child process, which has one thread. Returns its exit code."""
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    child = os.fork()
    if child == 0:
        try:
            _end_with(parent)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os._exit(work())
        except Exception:
            traceback.print_exc()
        os._exit(ExitCode.FAILED)
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program
    code = os.waitstatus_to_exitcode(_wait_and_pass_on(child))
    signal.signal(signal.SIGINT, interrupted)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 128 - code if code < 0 else code


def _end_with(parent: int) -> None:
    """The kernel kills this process when its parent has ended, which may be outside its PID
    namespace. It forgets that when the process enters a user namespace."""
    checked(LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() not in (parent, _OUTSIDE):
        os._exit(ExitCode.FAILED)


def _wait_and_pass_on(child: int) -> int:
    """Waits for the end of a child, and returns its status. Passes on what asks this process to
    end; these signals are blocked, so that none is lost before the wait begins."""
    while True:
        number = signal.sigwait(_AWAITED)
        if number != signal.SIGCHLD:
            os.kill(child, number)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status


def _is_ours(namespace: int) -> bool:
    """Whether this process is in the namespace already: root's labs are in root's user namespace,
    which cannot be entered again."""
    with Path("/proc/self/ns/user").open() as user:
        return os.path.sameopenfile(namespace, user.fileno())


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    host: str | None,
    places: Mapping[str, str],
) -> int:
    """Replaces this process by the program. Returns an exit code if that fails."""
    if places:
        try:
            show_elsewhere(places)
        except OSError as error:
            print(f"the files of FRR cannot be mounted: {error}", file=sys.stderr)
            return ExitCode.FAILED
    if host is not None:
        view.show_or_explain(host, tree_of(host))
    with suppress(OSError):
        os.chdir(folder)
    try:
        os.execvpe(command[0], list(command), environment)
    except FileNotFoundError:
        why = "there is no such file" if "/" in command[0] else "it is not installed"
        print(f"{command[0]}: {why}", file=sys.stderr)
        return _NOT_FOUND
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return _NOT_EXECUTABLE
