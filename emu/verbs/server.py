"""The NICs' side of the connections with programs, by a local socket.

A program may send anything, and stop at any time. It harms itself alone: the NICs never wait for
it, have no file whose size or flags it can change, and end it when it breaks the protocol.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from emu._core import ffi, lib
from emu.lab.ipc.files import receive
from emu.lab.stopped import is_stopped
from emu.rdma.context import Context
from emu.verbs.cm.ids import ProgramIds
from emu.verbs.cm.server import ConnectionManagers
from emu.verbs.delayed import DelayedWork
from emu.verbs.device import device_of
from emu.verbs.objects import ProgramObjects
from emu.verbs.peers import HostOf, pid_of

_MOST_FILES = 4
_ENDS_OF_QUEUE_PAIRS = (lib.UVERBS_DESTROY, lib.UVERBS_MODIFY_QP)
_REQUEST_BYTES = ffi.sizeof("struct uverbs_request")
_BELL_BYTES = 4096
_F_SEAL_FUTURE_WRITE = 0x10
"""From Linux' fcntl.h: no new mapping may write. Python has a name for it since 3.13."""
_TIME_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _F_SEAL_FUTURE_WRITE


class _Program:
    """A connected program. Its objects exist once it has opened the device."""

    def __init__(self, line: socket.socket, pid: int, context: Context) -> None:
        self.line = line
        self.pid = pid
        self.context = context
        self.client: Any = None
        self.objects: ProgramObjects | None = None
        self.ids: ProgramIds | None = None
        self.events = -1

    @property
    def owes_responses(self) -> bool:
        return self.objects is not None and self.objects.owes_responses()

    def end(self) -> None:
        """The process has gone: emulated time does not wait for it."""
        if self.client is not None:
            lib.uverbs_client_end(self.client)

    def close(self) -> None:
        """Destroys all that the program has made."""
        if self.ids is not None:
            self.ids.close()
        if self.objects is not None:
            self.objects.close()
            lib.uverbs_client_free(self.client)
            os.close(self.events)


class VerbsServer:
    """Serves the verbs of all programs on all hosts."""

    def __init__(
        self,
        contexts: Mapping[str, Context],
        host_of: HostOf,
        listener: socket.socket,
        clock: Any,
        event: Any,
    ) -> None:
        """`host_of`: the host of a program that has connected. `clock`: a `struct uverbs_clock` for
        programs. `event`: a `bool *` that becomes true when programs must go on."""
        _raise_limit_of_files()
        self._contexts = contexts
        self.connections = ConnectionManagers(contexts)
        self._clock = clock
        self.bell, self._bell_of_programs = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Programs write into it when they have work, or wait; on the exact clock, if the NICs
        sleep."""
        self._time = os.memfd_create("emulated-time", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._time, lib.uverbs_time_bytes())
        self.core = lib.uverbs_server_new(self._time, self.bell, event)
        fcntl.fcntl(self._time, fcntl.F_ADD_SEALS, _TIME_SEALS)
        self._poll = select.epoll()
        self._listener = listener
        self._host_of = host_of
        self._listens = False
        self._listen()
        self._programs: dict[int, _Program] = {}
        self.delayed = DelayedWork()
        """Ends of queue pairs that wait."""

    def answer_bell(self) -> None:
        """From now on the bell is something to answer, too."""
        self._poll.register(self.bell, select.EPOLLIN)

    def fileno(self) -> int:
        """Readable when there is something to answer."""
        return self._poll.fileno()

    def count_programs(self) -> dict[str, int]:
        """How many programs have opened the device of each host that has any."""
        return dict(Counter(one.context.name for one in self._opened()))

    def count_stopped(self) -> dict[str, int]:
        """How many of them a signal has stopped, on each host that has any."""
        return dict(Counter(one.context.name for one in self._opened() if is_stopped(one.pid)))

    def _opened(self) -> list[_Program]:
        return [one for one in self._programs.values() if one.objects is not None]

    def close(self) -> None:
        """Ends all programs' objects, and frees all memory. The listeners stay open."""
        for program in list(self._programs.values()):
            self._end(program)
        self._poll.close()
        lib.uverbs_server_free(self.core)
        for file in (self.bell, self._bell_of_programs, self._time):
            os.close(file)

    def answer(self) -> None:
        """Answers all requests that are there. Does not wait."""
        for descriptor, _ in self._poll.poll(0):
            if descriptor == self.bell:
                with suppress(BlockingIOError):  # a program may read it, too
                    os.read(self.bell, _BELL_BYTES)
            elif descriptor == self._listener.fileno():
                self._accept()
            elif descriptor in self._programs:  # otherwise an answer before has ended it
                self._answer_next(self._programs[descriptor])

    # ---- connections ----------------------------------------------------------

    def _listen(self) -> None:
        self._poll.register(self._listener, select.EPOLLIN)
        self._listens = True

    def _stop_listening(self) -> None:
        """Until a program ends: there is no file left for another one."""
        self._poll.unregister(self._listener)
        self._listens = False

    def _accept(self) -> None:
        try:
            line, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._stop_listening()
            return  # otherwise it has gone
        try:
            context = self._contexts[self._host_of(line)]
        except (OSError, KeyError):  # it has gone, or is on no host
            line.close()
            return
        line.setblocking(False)
        self._programs[line.fileno()] = _Program(line, pid_of(line), context)
        self._poll.register(line, select.EPOLLIN)

    def _end(self, program: _Program) -> None:
        """The program has ended, and its verbs objects with it."""
        descriptor = program.line.fileno()
        del self._programs[descriptor]
        self._poll.unregister(descriptor)
        program.line.close()
        program.end()
        now_ps = program.context.clock.now_ps
        self.delayed.add(now_ps, lambda: program.owes_responses, program.close)
        if not self._listens:
            self._listen()

    # ---- requests -------------------------------------------------------------

    def _answer_next(self, program: _Program) -> None:
        files: list[int] = []
        try:
            text, files, flags = receive(program.line, _REQUEST_BYTES, _MOST_FILES)
            if len(text) != _REQUEST_BYTES or flags & socket.MSG_TRUNC:
                self._end(program)
                return
            request = ffi.new("struct uverbs_request *")
            ffi.memmove(request, text, _REQUEST_BYTES)
            if request.command in _ENDS_OF_QUEUE_PAIRS and program.objects is not None:
                self.delayed.add(
                    program.context.clock.now_ps,
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
        """Carries out a request and answers it, unless the program has ended meanwhile."""
        if program.line.fileno() < 0:
            return
        reply = ffi.new("struct uverbs_reply *")
        given: list[int] = []
        """Files for the program, which are closed here."""
        try:
            self._carry_out(program, request, files, reply, given)
            socket.send_fds(program.line, [bytes(ffi.buffer(reply))], given)
        except OSError:  # it has gone, does not read its replies, or there are no files left
            self._end(program)
        finally:
            for file in given:
                os.close(file)

    def _carry_out(
        self, program: _Program, request: Any, files: Sequence[int], reply: Any, given: list[int]
    ) -> None:
        if request.command == lib.UVERBS_OPEN and program.objects is None:
            self._open(program, request, files, reply, given)
        elif program.objects is None:
            reply.error = errno.EPROTO
        else:
            lib.uverbs_take_requests_of(program.client, program.context.clock.now_ps)
            program.objects.answer(request, files, reply, given)

    def _open(
        self,
        program: _Program,
        request: Any,
        files: Sequence[int],
        reply: Any,
        given: list[int],
    ) -> None:
        if request.version != lib.UVERBS_VERSION or len(files) != 2:
            reply.error = errno.EPROTO
            return
        session, memory = files
        given += [os.dup(self._bell_of_programs), os.dup(self._time)]
        own_memory = os.dup(memory)
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        given.append(reading)
        os.set_blocking(reading, True)
        device = device_of(program.context)
        client = lib.uverbs_client_new(
            self.core, program.context.core, session, program.pid, writing, device.default_sl
        )
        if not client:
            os.close(writing)
            os.close(own_memory)
            reply.error = errno.EINVAL
            return
        program.client, program.events = client, writing
        program.objects = ProgramObjects(program.context, client, own_memory)
        program.ids = self.connections.ids_of(program.context, client)
        program.objects.add_commands(program.ids.commands())
        reply.opened.device = device
        reply.opened.clock = self._clock[0]


def _raise_limit_of_files() -> None:
    """Each program, and each of its completion channels, needs a few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
