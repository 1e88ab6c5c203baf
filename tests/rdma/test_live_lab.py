"""A lab that belongs to a program: how it ends, with a stand-in for the lab itself."""

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
from emu.rdma import live
from tests.support.lab_fabrics import clos_of

DIED = "the shim died (signal 9)"


class StandIn:
    """Listens where the lab would, and answers until it is told to end, or dies."""

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
    monkeypatch.setattr(live, "run_in_lab", own.run)
    monkeypatch.setattr(live, "slowdown_for", lambda *_: (1.0, ()))
    return own


def _owners() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lab"]


def test_a_lab_that_has_died_says_why_at_once(stand_in: StandIn) -> None:
    """Not, after a while, that it belongs to the program."""
    spec = clos_of(2)

    def use() -> None:
        with live._standing(spec, 1.0):
            stand_in.die()

    with pytest.raises(FabricError, match=r"^the shim died \(signal 9\)$"):
        use()
    assert (registry.names(), registry.ended(), _owners()) == ([], [], [])


def test_a_lab_that_lends_no_nic_ends_with_the_error(stand_in: StandIn) -> None:
    """And not only with the program."""
    with pytest.raises(UsageError, match="not now"), live.live_lab(clos_of(2)):
        pass
    assert stand_in.is_over.is_set()
    assert (registry.names(), registry.ended(), _owners()) == ([], [], [])
