"""The NICs that serve verbs programs on the hosts of a lab.

The library of a program connects to a local socket. The first connection starts the NICs, which
accept it and all later ones. They run until traffic of the spec replaces them, which no program may
use at that time; then the lab waits for the next connection.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
from collections.abc import Callable

from emu._core import ffi, lib
from emu.daemon.lab_clock import LabClock
from emu.daemon.nics import Nics, needed, prepare
from emu.daemon.verbs_socket import PLACE
from emu.errors import EmuError, UsageError
from emu.lab.ipc.files import receive
from emu.lab.session import Programs, Session
from emu.lab.supervisor import Supervisor

_MOST_FILES, _MOST_WAITING = 4, 64


class ProgramNics:
    """Starts the NICs for programs when they are needed."""

    def __init__(
        self,
        session: Session,
        supervisor: Supervisor,
        clock: LabClock,
        nics: Nics,
        why_busy: Callable[[], str],
    ) -> None:
        """`why_busy` returns why NICs cannot serve programs now; empty if they can."""
        self._session = session
        self._supervisor = supervisor
        self._clock = clock
        self._nics = nics
        self._why_busy = why_busy
        self._ended = threading.Event()
        self._listener = _listen()
        threading.Thread(target=self._serve, name="program NICs", daemon=True).start()

    def _serve(self) -> None:
        while True:
            select.select([self._listener], [], [])
            try:
                if why := self._why_busy():
                    raise UsageError(why)
                self._start()
            except (EmuError, OSError) as error:
                _refuse(self._listener, str(error))
                continue
            self._ended.wait()

    def _start(self) -> None:
        """Starts the NICs. They get a copy of the listening socket."""
        setup = self._session.nic_setup()
        with self._clock.files_for_programs() as shared:
            process = prepare(
                self._supervisor,
                setup,
                self._session.spec.name,
                [*shared, self._listener.fileno()],
                Programs().verbs,
            )
            with needed(self._supervisor, process):
                self._ended.clear()
                self._nics.begin(
                    process,
                    with_traffic=False,
                    endless=True,
                    files=shared,
                    on_end=self._ended.set,
                )


def _listen() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(PLACE))
    PLACE.chmod(0o666)
    listener.listen(_MOST_WAITING)
    return listener


def _refuse(listener: socket.socket, reason: str) -> None:
    """Answers the first request of a connection with an error."""
    line, _ = listener.accept()
    with line:
        line.settimeout(1)
        try:
            _, files, _ = receive(line, ffi.sizeof("struct uverbs_request"), _MOST_FILES)
            for file in files:
                os.close(file)
            text = reason.encode()[: lib.UVERBS_REASON_BYTES - 1]
            reply = ffi.new("struct uverbs_reply *", {"error": errno.EBUSY, "reason": text})
            line.send(bytes(ffi.buffer(reply)))
        except OSError:  # it has gone
            pass
