"""Starts a lab's first process in namespaces of its own, and relays its messages.

    emu ── setpriv ─▶ unshare ──▶ python -m emu.lab.init    pid 1 of the lab
         (dies with emu)  (kills its child when it dies)

The lab ends when any of the three ends, whatever the cause. When pid 1 ends, the kernel
ends every other process of the lab, and with the last of them its network namespaces,
interfaces and mounts. `setpriv` and `unshare` are programs of util-linux.
Root stays in its user namespace, because eBPF can be loaded only there.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from emu.errors import ExitCode, FabricError, HostError, UsageError
from emu.lab.command import environment, is_installed, missing_program
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.jobs import Job
from emu.lab.ipc.messages import Progress, Started, Up
from emu.lab.stopped import SECONDS_BETWEEN_LOOKS, StopWatch
from emu.resources import allow_files

A = TypeVar("A")

INSIDE = "emu.lab.init"
PRIVATE = Path("/run")
"""The mount point of the lab's own file system, which ends with the lab."""

_PROGRAMS = ("setpriv", "unshare", "mount", "mnexec", "ifconfig", "bash")
"""The programs that every lab needs. Without one of the last three Mininet would exit or hang
without an error."""
_KEEPS_NAMESPACES = {
    # Ubuntu from 23.10 on. `unshare` works, but nothing is allowed inside: it ends with
    # "write failed /proc/self/uid_map: Operation not permitted", mounts with "Permission denied".
    # https://ubuntu.com/blog/ubuntu-23-10-restricted-unprivileged-user-namespaces
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel.unprivileged_userns_clone": ("0", "1"),  # Debian's kernels before 6.1, Ubuntu's
    **{f"user.max_{kind}_namespaces": ("0", "15000") for kind in ("user", "net", "pid", "mnt")},
}
"""Sysctl -> the value that forbids new namespaces, and a value that allows them."""
_STDERR = 2
_FILES_TO_START = 64
_SECONDS_TO_END = 5.0


def run_in_lab(
    job: Job[A],
    *,
    on_progress: Callable[[Progress], None],
    on_up: Callable[[], None] = lambda: None,
    files: Sequence[int] = (),
    terminal: bool = False,
    may_be_stopped: bool = True,
    module: str = INSIDE,
) -> tuple[A, list[int]]:
    """Runs one job in a new lab. Returns its result and the open files sent with it.

    With `terminal` the job has the terminal, and Ctrl-C interrupts it; without, it has no
    input and its output goes to stderr. The job receives copies of the open `files`.
    `on_up` is called when the lab answers queries. Unless the lab `may_be_stopped`, it ends when
    its first process is stopped (SIGSTOP) and does not go on. `module` is the Python module of
    pid 1. Raises HostError, FabricError and KeyboardInterrupt, after the lab has ended.
    """
    _refuse_private(Path(job.out))
    allow_files(_FILES_TO_START)
    _need_programs()
    _need_mininet()
    with _lab(module, terminal) as (process, channel):
        try:
            channel.send(job, [_STDERR, *files])
            channel.expect(Started)
        except EOFError:
            raise _did_not_start(process) from None
        try:
            refuse_stop = None if may_be_stopped else _StopRefusal(process)
            result = _relay(channel, job.answer_type(), on_progress, on_up, refuse_stop)
            return result, channel.take_files()
        except EOFError:
            raise _ended(process) from None


def unshare_command(*, root: bool) -> list[str]:
    """The command that runs the command after it in a lab's namespaces."""
    user = [] if root else ["--user", "--map-root-user"]
    return [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", *user, "--net", "--pid", "--mount", "--mount-proc"),
        *("--fork", "--kill-child=KILL", "--"),
    ]


@contextmanager
def _lab(module: str, terminal: bool) -> Iterator[tuple[subprocess.Popen[bytes], Channel]]:
    """A lab's outermost process, and the channel to its first process. Ends both at exit."""
    channel, far = channel_pair()
    with far, _lab_has_terminal(terminal), _start(module, far, terminal) as process:
        far.close()
        try:
            yield process, channel
        finally:
            channel.close()  # this ends the lab
            _wait(process)


def _start(module: str, far: socket.socket, terminal: bool) -> subprocess.Popen[bytes]:
    inside = [sys.executable, "-m", module, str(far.fileno())]
    return subprocess.Popen(
        [*unshare_command(root=os.geteuid() == 0), *inside],
        stdin=None if terminal else subprocess.DEVNULL,
        stdout=None if terminal else _STDERR,
        stderr=subprocess.PIPE,  # until the lab has started; then it has this process's
        env=environment(),
        pass_fds=[far.fileno()],
        start_new_session=not terminal,
    )


def _relay(
    channel: Channel,
    result: type[A],
    on_progress: Callable[[Progress], None],
    on_up: Callable[[], None],
    refuse_stop: Callable[[], None] | None,
) -> A:
    while True:
        try:
            message = channel.receive(None if refuse_stop is None else SECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            assert refuse_stop is not None
            refuse_stop()
            continue
        if isinstance(message, result):
            return message
        if isinstance(message, Progress):
            on_progress(message)
        if isinstance(message, Up):
            on_up()


class _StopRefusal:
    """Raises FabricError when the lab's first process, or the one that waits for it, is stopped."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._pid = process.pid
        self._watch = StopWatch()

    def __call__(self) -> None:
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        if self._watch.find_stopped([self._pid, *map(int, children)]) is not None:
            raise FabricError("the lab's first process was stopped by a signal and does not go on")


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Waits until the lab has ended; kills it after `_SECONDS_TO_END`."""
    if process.poll() is None and not _ends(process.pid, within=_SECONDS_TO_END):
        process.kill()
    process.wait()


def _ends(child: int, *, within: float) -> bool:
    """Whether a child process ends within so many seconds. `Popen.wait` with a time limit looks
    every 50 ms; this returns at once."""
    end = os.pidfd_open(child)
    try:
        return bool(select.select([end], [], [], within)[0])
    finally:
        os.close(end)


@contextmanager
def _lab_has_terminal(terminal: bool) -> Iterator[None]:
    """Ignores Ctrl-C in this process while the lab has the terminal."""
    if not terminal:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _did_not_start(
    process: subprocess.Popen[bytes],
) -> FabricError | HostError | KeyboardInterrupt:
    """The error for a lab whose first process ended before it sent a message."""
    _, stderr = process.communicate()
    if process.returncode == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    if not namespaces_allowed():
        return HostError(
            "this machine does not let you make namespaces", remedy=namespaces_remedy()
        )
    reason = stderr.decode(errors="replace").strip() or "its first process died"
    return FabricError(f"the lab did not start: {reason}")


def _ended(process: subprocess.Popen[bytes]) -> FabricError | KeyboardInterrupt:
    """The error for a lab that ended without a result."""
    if process.wait() == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    return FabricError("the lab's first process died")


def namespaces_allowed() -> bool:
    """Whether this user may make a lab's namespaces, found out by making some."""
    command = [*unshare_command(root=os.geteuid() == 0), "true"]
    return subprocess.run(command, capture_output=True).returncode == 0


def namespaces_remedy(sysctls: Path = Path("/proc/sys")) -> str:
    """The command that allows this user to make namespaces, from this machine's sysctls."""
    settings = [
        f"{name}={allows}"
        for name, (forbids, allows) in _KEEPS_NAMESPACES.items()
        if _value_of(sysctls / name.replace(".", "/")) == forbids
    ]
    command = f"sysctl -w {' '.join(settings)}"
    if os.geteuid() == 0:
        return command if settings else "if this is a container, start it with --privileged"
    return f"run as root, or: sudo {command}" if settings else "run as root"


def _value_of(sysctl: Path) -> str | None:
    """A sysctl's value; None if the kernel lacks it."""
    try:
        return sysctl.read_text().strip()
    except OSError:
        return None


def _need_programs() -> None:
    for program in _PROGRAMS:
        if not is_installed(program):
            raise missing_program(program)


def _need_mininet() -> None:
    if find_spec("mininet") is None:
        raise HostError(
            "Mininet's Python package is missing",
            remedy="sudo apt-get install mininet (and a virtual environment with"
            " --system-site-packages)",
        )


def _refuse_private(out: Path) -> None:
    if out.resolve().is_relative_to(PRIVATE):
        raise UsageError(
            f"{out}: results would be lost, because a lab has its own {PRIVATE}; choose another "
            "folder"
        )
