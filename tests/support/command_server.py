"""Starts `emu` commands as forks of a Python that has imported what they need, which takes a new
Python up to half a second.

    tests ── words, user, folder, environment, stdin, stdout, stderr ──▶ server ── forks the command
          ◀── its pid; later its exit code, on a line of its own ──────────┘

The server, `python -m tests.support.command_server FD`, ends with the tests, and kills the commands
that are left.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

_ROOT = Path(__file__).parents[2]
_MODULES = (
    "emu.cli.counters",
    "emu.cli.down",
    "emu.cli.exec",
    "emu.cli.fault",
    "emu.cli.run",
    "emu.cli.status",
    "emu.cli.step",
    "emu.cli.traffic",
    "emu.cli.up",
    "emu.daemon.client",
    "emu.daemon.client_snapshot",
    "emu.daemon.up",
    "emu.report.port_counters",
    "emu.runtime",
    "emu.spec.fault.from_text",
    "emu.spec.model",
)
_MOST_BYTES = 200_000


class Identity(NamedTuple):
    """Whom a command runs as, without further groups. None: as the tests do."""

    group: int | None = None
    user: int | None = None


# ---- the tests' side ---------------------------------------------------------------------


class ForkedCommand(subprocess.Popen[bytes]):
    """A command that the server has forked. The server tells when it ends, as its parent."""

    def __init__(
        self,
        words: Sequence[str],
        identity: Identity,
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        """Runs `emu` with these words, in a session of its own. It does not begin like a
        subprocess.Popen, and has all that its methods use."""
        request = {
            "words": [*words],
            "identity": [*identity],
            "folder": str(folder),
            "environment": dict(environment),
        }
        own, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = [os.pipe() for _ in range(3)]
        (in_far, in_own), (out_own, out_far), (err_own, err_far) = pipes
        files = [far.fileno(), in_far, out_far, err_far]
        socket.send_fds(_server(), [json.dumps(request).encode()], files)
        for file in (in_far, out_far, err_far):
            os.close(file)
        far.close()
        self.args = ["emu", *words]
        self.pid = int(own.recv(_MOST_BYTES))
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = os.fdopen(in_own, "wb", 0)
        self.stdout: IO[bytes] | None = os.fdopen(out_own, "rb", 0)
        self.stderr: IO[bytes] | None = os.fdopen(err_own, "rb", 0)
        self.encoding = self.errors = self.text_mode = None
        self._status = own
        self._child_created = True
        self._communication_started = False
        self._input: bytes | None = None
        self._sigint_wait_secs = 0.25

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._status.recv(_MOST_BYTES) or -signal.SIGKILL)
            self._status.close()
        return self.returncode


@cache
def _server() -> socket.socket:
    """The line to this process's server."""
    line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    subprocess.Popen(
        [sys.executable, "-m", __name__, str(far.fileno())],
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": str(_ROOT), "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[far.fileno()],
        start_new_session=True,
    )
    far.close()
    return line


# ---- the server --------------------------------------------------------------------------


class _Server:
    """Forks commands, and tells how they end."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._commands: dict[int, tuple[int, socket.socket]] = {}
        """Descriptor of the process -> its pid and the line that is told its end."""

    def serve(self) -> None:
        """Until the tests end. Returns in the process of each command, with its identity, files
        and environment."""
        while True:
            readable, _, _ = select.select([self._line.fileno(), *self._commands], [], [])
            for one in readable:
                if one in self._commands:
                    self._tell_end(one)
                elif not self._begin_next():
                    return

    def _begin_next(self) -> bool:
        """Whether this is still the server."""
        text, files, _, _ = socket.recv_fds(self._line, _MOST_BYTES, 4)
        if not text:
            self._kill_all()
            sys.exit()
        pid = os.fork()
        if pid == 0:
            self._become_command(json.loads(text), files)
            return False
        status, *pipes = files
        for pipe in pipes:
            os.close(pipe)
        line = socket.socket(fileno=status)
        line.send(str(pid).encode())
        self._commands[os.pidfd_open(pid)] = (pid, line)
        return True

    def _become_command(self, request: Mapping[str, Any], files: Sequence[int]) -> None:
        self._line.close()
        for descriptor, (_, line) in self._commands.items():
            os.close(descriptor)
            line.close()
        status, *standard = files
        os.close(status)
        for number, file in enumerate(standard):
            os.dup2(file, number)
            os.close(file)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup` ignores
        os.setsid()
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        _take_identity(Identity(*request["identity"]))
        sys.argv = ["emu", *request["words"]]

    def _tell_end(self, descriptor: int) -> None:
        pid, line = self._commands.pop(descriptor)
        _, status = os.waitpid(pid, 0)
        with suppress(OSError):  # the tests no longer want to know
            line.send(str(os.waitstatus_to_exitcode(status)).encode())
        line.close()
        os.close(descriptor)

    def _kill_all(self) -> None:
        for descriptor in self._commands:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def _take_identity(identity: Identity) -> None:
    if identity.group is not None:
        os.setgroups([])
        os.setresgid(*[identity.group] * 3)
    if identity.user is not None:
        os.setresuid(*[identity.user] * 3)


def _main() -> None:
    from importlib import import_module

    from emu.cli.main import main

    for module in _MODULES:
        import_module(module)
    gc.freeze()  # so that forks share more
    _Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    _run(main)


def _run(main: Callable[[], None]) -> None:
    """Ends the process at once: it takes longer to take this Python apart than most commands."""
    try:
        main()
    except SystemExit as end:
        with suppress(OSError):  # main has reported it
            sys.stdout.flush()
        os._exit(int(end.code or 0))


if __name__ == "__main__":
    _main()
