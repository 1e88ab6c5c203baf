"""The fork server: a copy of a lab's first process, from which the lab's other Python processes are
forked, with their modules loaded.

    first process ── module, channel, stderr ──▶ fork server
                                                   │ forks a process, which forks the new one
                  ◀──────────── its pid ───────────┘                       runs the module's job

A new Python takes a third of a second to import the modules, a fork some milliseconds. The server
is forked at once, while the first process has no threads, locks or other open files. The process
between the two ends at once: the new one is then a child of the lab's first process, which can wait
for its end.

All of them have the command line of the first process, so each has a name (PR_SET_NAME) that `ps`
and `top` show.
"""

from __future__ import annotations

import gc
import os
import resource
import socket
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from emu.errors import ExitCode
from emu.lab.ipc.files import receive
from emu.lab.libc import LIBC, checked
from emu.lab.worker import serve

NAMES = {
    "emu.lab.shim_main": "emu-shim",
    "emu.lab.rnic_main": "emu-nics",
    "emu.lab.tcp.tcp_main": "emu-tcp",
    "emu.verbs.nic_main": "emu-verbs",
    "emu.daemon.exporter.main": "emu-exporter",
    "emu.daemon.syslog.main": "emu-syslog",
}
"""Module with a `job` -> the name of its process."""
FIRST, SERVER = "emu-lab", "emu-forks"
"""The names of the first process and of the fork server."""
_LOADS = ("emu.lab.shim", "emu.lab.rnic_main")
"""The modules that most labs need beside those of the first process."""
_PR_SET_NAME = 15
_MOST_BYTES = 256


class ForkServer:
    """The fork server of a lab. Any thread of the first process may call it."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self._line = line
        self._asking = threading.Lock()

    @classmethod
    def start(cls, owner: int) -> ForkServer:
        """Forks the server from the calling process, which must have no other threads. The server
        closes its copy of `owner`, the descriptor of the lab's owner."""
        set_name(FIRST)
        line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            line.close()
            os.close(owner)
            _answer_requests(far)
        far.close()
        return cls(pid, line)

    def can_run(self, command: Sequence[str]) -> bool:
        """Whether the command runs one of the modules."""
        *_, option, module = command
        return option == "-m" and module in NAMES

    def run(self, command: Sequence[str], channel: int) -> int:
        """Starts a process that carries out the job of the command's module with this channel.
        Returns its pid. Raises OSError if there can be no further process, EOFError if the server
        has ended."""
        with self._asking:
            try:
                socket.send_fds(self._line, [command[-1].encode()], [channel, 2])
                answer = self._line.recv(_MOST_BYTES)
            except OSError:
                raise EOFError from None
        if not answer:
            raise EOFError
        pid = int(answer)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
        return pid


def set_name(name: str) -> None:
    """Names the calling process."""
    checked(LIBC.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0))


# ---- the server ------------------------------------------------------------


def _answer_requests(line: socket.socket) -> NoReturn:
    """Starts processes until the lab's first process ends."""
    os.setsid()  # Ctrl-C must not interrupt it
    set_name(SERVER)
    for module in _LOADS:
        import_module(module)
    gc.freeze()  # collections in the new processes write to no shared page
    while True:
        asked, files, _ = receive(line, _MOST_BYTES, 2)
        if not asked:
            os._exit(ExitCode.OK)
        channel, stderr = files
        pid = _fork_detached(asked.decode(), channel, stderr, line.fileno())
        for file in files:
            os.close(file)
        line.send(str(pid).encode())


def _fork_detached(module: str, channel: int, stderr: int, line: int) -> int:
    """Forks a process that is not a child of this one. Returns its pid, or a negative errno."""
    reader, writer = os.pipe()
    try:
        between = os.fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        return -(error.errno or 1)
    if between == 0:
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            for file in (line, reader, writer):
                os.close(file)
            _work(module, channel, stderr)
        os.write(writer, str(pid).encode())
        os._exit(ExitCode.OK)
    os.close(writer)
    os.waitpid(between, 0)
    pid = int(os.read(reader, _MOST_BYTES))
    os.close(reader)
    return pid


def _work(module: str, channel: int, stderr: int) -> NoReturn:
    """Carries out the module's job, without input and in a session of its own."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for copied, to in ((nothing, 0), (stderr, 1), (stderr, 2)):
            os.dup2(copied, to)
        os.close(nothing)
        os.close(stderr)
        set_name(NAMES[module])
        serve(import_module(module).job, channel)
    finally:
        os._exit(ExitCode.FAILED)
