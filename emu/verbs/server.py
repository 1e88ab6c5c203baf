"""The NICs' side of the connections with programs, by a local socket.

A program is on the host in whose network namespace it is.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from emu._core import ffi, lib
from emu.rdma.context import Context
from emu.verbs.device import device_of
from emu.verbs.objects import ProgramObjects

_MOST_FILES = 4
_LONGEST_DELAY_PS = 10_000_000
"""A pause may hold a response back for as long as it likes."""
_ENDS_OF_QUEUE_PAIRS = (lib.UVERBS_DESTROY, lib.UVERBS_MODIFY_QP)
_CREDENTIALS = struct.Struct("3i")
_REQUEST_BYTES = ffi.sizeof("struct uverbs_request")


class _Program:
    """A connected program. Its objects exist once it has opened the device."""

    def __init__(self, line: socket.socket, pid: int, context: Context) -> None:
        self.line = line
        self.pid = pid
        self.context = context
        self.client: Any = None
        self.objects: ProgramObjects | None = None
        self.events = -1

    def close(self) -> None:
        """Destroys all that the program has made."""
        if self.objects is not None:
            self.objects.close()
            lib.uverbs_client_free(self.client)
            os.close(self.events)


@dataclass(frozen=True)
class _Delayed:
    """Work that waits until queue pairs have sent their responses."""

    until_ps: int
    """Then it waits no longer."""
    must_wait: Callable[[], bool]
    work: Callable[[], None]


class VerbsServer:
    """Serves the verbs of all programs on all hosts."""

    def __init__(
        self,
        contexts: Mapping[str, Context],
        tasks: Mapping[str, int],
        listener: socket.socket,
        clock: Any,
        event: Any,
    ) -> None:
        """`tasks`: a process in the network namespace of each host. `clock`: a
        `struct uverbs_clock` for programs. `event`: a `bool *` that becomes true when programs must
        go on."""
        self._contexts = contexts
        self._clock = clock
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Programs write it when they have work, or wait."""
        self._time = os.memfd_create("emulated-time", os.MFD_CLOEXEC)
        os.ftruncate(self._time, lib.uverbs_time_bytes())
        self.core = lib.uverbs_server_new(self._time, event)
        self._poll = select.epoll()
        self._listener = listener
        self._host_of = {_network_of(task): host for host, task in tasks.items()}
        self._poll.register(listener, select.EPOLLIN)
        self._poll.register(self.bell, select.EPOLLIN)
        self._programs: dict[int, _Program] = {}
        self._delayed: list[_Delayed] = []

    def fileno(self) -> int:
        """Readable when there is something to answer."""
        return self._poll.fileno()

    @property
    def has_programs(self) -> bool:
        return bool(self._programs)

    def answer(self) -> None:
        """Answers all requests that are there. Does not wait."""
        for descriptor, _ in self._poll.poll(0):
            if descriptor == self.bell:
                os.eventfd_read(self.bell)
            elif descriptor == self._listener.fileno():
                self._accept()
            else:
                self._answer_next(self._programs[descriptor])

    def carry_out_delayed(self, now_ps: int) -> None:
        """Does what has waited for responses of queue pairs, unless it still has to wait."""
        delayed, self._delayed = self._delayed, []
        for one in delayed:
            if one.must_wait() and now_ps < one.until_ps:
                self._delayed.append(one)
            else:
                one.work()

    @property
    def has_delayed(self) -> bool:
        return bool(self._delayed)

    def _delay(
        self, context: Context, must_wait: Callable[[], bool], work: Callable[[], None]
    ) -> None:
        """Does the work now, or when it need not wait any more."""
        if must_wait():
            until_ps = context.clock.now_ps + _LONGEST_DELAY_PS
            self._delayed.append(_Delayed(until_ps, must_wait, work))
        else:
            work()

    def _accept(self) -> None:
        try:
            line, _ = self._listener.accept()
        except OSError:  # it has gone, or there are too many open files
            return
        pid, _, _ = _CREDENTIALS.unpack(
            line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        try:
            context = self._contexts[self._host_of[_network_of(pid)]]
        except (OSError, KeyError):  # it has gone, or is on no host
            line.close()
            return
        line.setblocking(False)
        self._programs[line.fileno()] = _Program(line, pid, context)
        self._poll.register(line, select.EPOLLIN)

    def _answer_next(self, program: _Program) -> None:
        files: list[int] = []
        try:
            text, files, _, _ = socket.recv_fds(
                program.line, _REQUEST_BYTES, _MOST_FILES, socket.MSG_CMSG_CLOEXEC
            )
            if len(text) != _REQUEST_BYTES:
                self._end(program)
                return
            request = ffi.new("struct uverbs_request *")
            ffi.memmove(request, text, _REQUEST_BYTES)
            if request.command in _ENDS_OF_QUEUE_PAIRS and program.objects is not None:
                self._delay(
                    program.context,
                    partial(program.objects.owes_responses, request.handle),
                    partial(self._reply, program, request, ()),
                )
            else:
                self._reply(program, request, files)
        except OSError:  # it has gone
            self._end(program)
        finally:
            for file in files:
                os.close(file)

    def _reply(self, program: _Program, request: Any, files: Sequence[int]) -> None:
        """Carries out a request and answers it."""
        if program.line.fileno() < 0:
            return  # it has ended meanwhile
        reply = ffi.new("struct uverbs_reply *")
        answer_files = self._carry_out(program, request, files, reply)
        try:
            socket.send_fds(program.line, [bytes(ffi.buffer(reply))], answer_files)
        except OSError:  # it has gone, or does not read its replies
            self._end(program)

    def _carry_out(
        self, program: _Program, request: Any, files: Sequence[int], reply: Any
    ) -> list[int]:
        """Fills the reply. Returns its files."""
        if request.command == lib.UVERBS_OPEN and program.objects is None:
            return self._open(program, request, files, reply)
        if program.objects is None:
            reply.error = errno.EPROTO
            return []
        lib.uverbs_take_requests(self.core, program.context.clock.now_ps)
        program.objects.answer(request, files, reply)
        return []

    def _open(self, program: _Program, request: Any, files: Sequence[int], reply: Any) -> list[int]:
        if request.version != lib.UVERBS_VERSION or len(files) != 3:
            reply.error = errno.EPROTO
            return []
        session, memory, events = files
        os.set_blocking(events, False)
        program.events = os.dup(events)
        program.client = lib.uverbs_client_new(
            self.core, program.context.core, session, program.pid, program.events
        )
        if not program.client:
            os.close(program.events)
            reply.error = errno.EINVAL
            return []
        program.objects = ProgramObjects(program.context, program.client, os.dup(memory))
        reply.opened.device = device_of(program.context)
        reply.opened.clock = self._clock[0]
        return [self.bell, self._time]

    def _end(self, program: _Program) -> None:
        """The program has ended, and its verbs objects with it."""
        descriptor = program.line.fileno()
        del self._programs[descriptor]
        self._poll.unregister(descriptor)
        program.line.close()
        self._delay(
            program.context,
            lambda: program.objects is not None and program.objects.owes_responses(),
            program.close,
        )


def _network_of(pid: int) -> int:
    """The inode of a process's network namespace. Raises OSError."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino
