"""The end of a lab that belongs to a program, with a stand-in for the lab itself."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from emu.daemon import registry
from emu.daemon.messages import EndLab, GetVersion, Version
from emu.errors import FabricError, UsageError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.jobs import ServeLab
from emu.lab.ipc.messages import Done, Failure
from emu.lab.version import version
from emu.rdma import own_lab, real_clock
from tests.support.lab_fabrics import clos_of

DIED = "the shim died (signal 9)"


class StandIn:
    """Listens like a lab, and answers until it is ended or dies."""

    def __init__(self) -> None:
        self.is_to_die = threading.Event()
        self.is_over = threading.Event()

    def run(
        self, job: ServeLab, *, on_progress: Any, on_up: Any, files: Sequence[int]
    ) -> tuple[Done, list[int]]:
        with socket.socket(fileno=os.dup(files[0])) as listener:
            on_up()
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
            self.is_over.wait()
        if self.is_to_die.is_set():
            raise FabricError(DIED)
        return Done(), []

    def die(self) -> None:
        self.is_to_die.set()
        self.is_over.set()

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._talk, args=(listener.accept()[0],)).start()

    def _talk(self, line: socket.socket) -> None:
        with suppress(EOFError), line:
            channel = Channel(line)
            while True:
                match channel.receive():
                    case GetVersion():
                        channel.send(Version(version()))
                    case EndLab():
                        self.is_over.set()
                        return
                    case _:
                        channel.send(Failure("usage", "not now"))


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own = StandIn()
    monkeypatch.setattr(own_lab, "run_in_lab", own.run)
    monkeypatch.setattr(real_clock, "slowdown_for", lambda *_: (1.0, ()))
    return own


def _owners() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lab"]


def test_dead_lab_reports_its_cause_at_once(stand_in: StandIn) -> None:
    """Instead of reporting later that the lab belongs to the program."""
    job = ServeLab(clos_of(2).to_json(), 1.0)

    def use() -> None:
        with own_lab.own_lab(job):
            stand_in.die()

    with pytest.raises(FabricError, match=r"^the shim died \(signal 9\)$"):
        use()
    assert (registry.names(), registry.ended(), _owners()) == ([], [], [])


def test_lab_without_a_nic_ends_with_the_error(stand_in: StandIn) -> None:
    """And not only at the end of the program."""
    with pytest.raises(UsageError, match="not now"), real_clock.lab_in_namespaces(clos_of(2)):
        pass
    assert stand_in.is_over.is_set()
    assert (registry.names(), registry.ended(), _owners()) == ([], [], [])
