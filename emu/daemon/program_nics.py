"""The NICs that serve verbs programs on the hosts of a lab.

Every host has a local socket, to which the library of a program connects. The first connection
starts the NICs, which accept it and all later ones. They run until traffic of the spec replaces
them, which no program may use at that time; then the lab waits for the next connection.
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
from emu.errors import EmuError, UsageError
from emu.lab.namespace import PRIVATE
from emu.lab.session import Programs, Session
from emu.lab.supervisor import Supervisor

FOLDER = PRIVATE / "verbs"
"""A socket for each host, by its name."""
VARIABLE = "EMU_VERBS"
"""The environment variable that names the socket to the library."""
_MOST_FILES = 4


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
        FOLDER.mkdir()
        self._listeners = {host: _listen(host) for host in session.spec.topology.build().host}
        threading.Thread(target=self._serve, name="program NICs", daemon=True).start()

    def _serve(self) -> None:
        while True:
            readable, _, _ = select.select(list(self._listeners.values()), [], [])
            try:
                if why := self._why_busy():
                    raise UsageError(why)
                self._start()
            except (EmuError, OSError) as error:
                for listener in readable:
                    _refuse(listener, str(error))
                continue
            self._ended.wait()

    def _start(self) -> None:
        """Starts the NICs. They get copies of the listening sockets."""
        setup = self._session.nic_setup()
        sockets = [listener.fileno() for listener in self._listeners.values()]
        with self._clock.files_for_programs() as shared:
            process = prepare(
                self._supervisor,
                setup,
                self._session.spec.name,
                [*shared, *sockets],
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


def _listen(host: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(FOLDER / host))
    (FOLDER / host).chmod(0o666)
    listener.listen(64)
    return listener


def _refuse(listener: socket.socket, reason: str) -> None:
    """Answers the first request of a connection with an error."""
    line, _ = listener.accept()
    with line:
        line.settimeout(1)
        try:
            _, files, _, _ = socket.recv_fds(line, ffi.sizeof("struct uverbs_request"), _MOST_FILES)
            for file in files:
                os.close(file)
            text = reason.encode()[: lib.UVERBS_REASON_BYTES - 1]
            reply = ffi.new("struct uverbs_reply *", {"error": errno.EBUSY, "reason": text})
            line.send(bytes(ffi.buffer(reply)))
        except OSError:  # it has gone
            pass
