"""The NICs' side of programs' verbs in this process, on the virtual clock, and bare programs: what
a program's library sends, and anything else."""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emu._core import ffi, lib
from emu.rdma import Context
from emu.verbs.server import VerbsServer
from tests.support.qp_pairs import lab_of

SHARED_BYTES = 1 << 20
"""More than any queue of a test needs."""
MEMORY_BYTES = 1 << 24
STEP_PS = 10_000_000
NICS = "nics"


def sealed(size: int, seals: int = fcntl.F_SEAL_SHRINK) -> int:
    """New shared memory, as the NICs want it."""
    file = os.memfd_create("emu-test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, size)
    if seals:
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file


class Program:
    """A connected program, which has not opened the device."""

    def __init__(self, folder: Path, host: str, number: int) -> None:
        """`number`: another one for each program."""
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.line.bind(str(folder / f"{host}-{number}"))
        self.line.connect(str(folder / NICS))
        self.shared: list[mmap.mmap] = []
        """The session, the registered memory and queues."""
        self.pipes: list[int] = []

    def send(self, files: Sequence[int] = (), **fields: Any) -> None:
        """Sends a request with these fields, and closes the files."""
        request = ffi.new("struct uverbs_request *", fields)
        self.send_bytes(bytes(ffi.buffer(request)), files)

    def send_bytes(self, text: bytes, files: Sequence[int] = ()) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        try:
            self.line.sendmsg([text], rights if files else [])
        finally:
            for file in files:
                os.close(file)

    def memory(self, size: int = SHARED_BYTES) -> int:
        """A file for a request. The program has it mapped, too."""
        file = sealed(size)
        self.shared.append(mmap.mmap(file, size))
        return file

    def reply(self) -> Any:
        """The next reply. Raises BlockingIOError when there is none, EOFError at the end."""
        size = ffi.sizeof("struct uverbs_reply")
        rights = array.array("i")
        room = socket.CMSG_SPACE(4 * rights.itemsize)
        text, control, _, _ = self.line.recvmsg(size, room, socket.MSG_DONTWAIT)
        for _, _, files in control:
            rights.frombytes(files)
        self.pipes += rights
        if len(text) != size:
            raise EOFError
        reply = ffi.new("struct uverbs_reply *")
        ffi.memmove(reply, text, size)
        return reply

    def open(self) -> None:
        """Sends the first request."""
        files = [self.memory(), self.memory(MEMORY_BYTES)]
        self.send(files, command=lib.UVERBS_OPEN, version=lib.UVERBS_VERSION)

    def close(self) -> None:
        self.line.close()
        for shared in self.shared:
            shared.close()
        for pipe in self.pipes:
            os.close(pipe)


class Served:
    """A server with two hosts, h1 and h2."""

    def __init__(self, server: VerbsServer, contexts: Mapping[str, Context], folder: Path) -> None:
        self.server = server
        self._contexts = contexts
        self._clock = contexts["h1"].clock
        self._folder = folder
        self._programs = 0

    def program(self, host: str = "h1") -> Program:
        self._programs += 1
        return Program(self._folder, host, self._programs)

    def opened(self, host: str = "h1") -> Program:
        """A program that has opened the device."""
        program = self.program(host)
        program.open()
        self.turn()
        assert program.reply().error == 0
        return program

    def ask(self, program: Program, files: Sequence[int] = (), **fields: Any) -> Any:
        program.send(files, **fields)
        self.turn()
        return program.reply()

    def packets(self) -> int:
        """How many valid packets the NICs have received."""
        return sum(one.counters["rx_packets"] for one in self._contexts.values())

    def turn(self) -> None:
        """What the NICs' process does again and again."""
        self.server.answer()  # connections, ...
        self.server.answer()  # ... and what they have sent
        lib.uverbs_take_requests(self.server.core, self._clock.now_ps)
        lib.fabric_run(self._clock.fabric.core, self._clock.now_ps + STEP_PS)
        lib.uverbs_give_completions(self.server.core)
        lib.uverbs_set_time(self.server.core, self._clock.now_ps)


@contextmanager
def served(folder: Path, fabric: str = "roce") -> Iterator[Served]:
    with lab_of(folder, fabric) as lab:
        contexts = {name: lab.host(name).rdma for name in ("h1", "h2")}
        clock = contexts["h1"].clock
        listener = _listen(folder / NICS)
        shown = ffi.new("struct uverbs_clock *", {"is_exact": True})
        server = VerbsServer(contexts, _host_of, listener, shown, clock.event)
        try:
            yield Served(server, contexts, folder)
        finally:
            server.close()
            listener.close()


def _host_of(line: socket.socket) -> str:
    """Here programs name their sockets after their hosts."""
    return Path(line.getpeername()).name.partition("-")[0]


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(path))
    listener.listen(100)
    return listener
