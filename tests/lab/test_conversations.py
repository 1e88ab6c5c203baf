"""What who talks with a standing lab hears when it ends, without a lab."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from emu.errors import FabricError, UsageError
from emu.lab.channel import Channel, channel_pair
from emu.lab.messages import Done, Message
from emu.lab.standing import client
from emu.lab.standing.client import StandingLab
from emu.lab.standing.job import Conversations
from emu.lab.version import version

REASON = "the lab toy has ended: ibsim died (signal 9)"


class Desk:
    """Answers `version` and `echo`; is asked in vain once a process of the lab is gone."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def answer(self, ask: Message) -> tuple[Done, list[int]]:
        match getattr(ask, "what", None):
            case "version":
                return Done({"version": version()}), []
            case "status":
                return Done({}), []
            case "echo":
                return Done({"said": "echo"}), []
            case "shim":
                self.asked.set()
                raise EOFError
        raise UsageError("what?")


class Toy:
    """A lab of conversations alone."""

    def __init__(self) -> None:
        self.desk, self.gone = Desk(), threading.Event()
        self.conversations = Conversations(self.desk, self._wait)  # type: ignore[arg-type]

    def _wait(self) -> None:
        self.gone.wait()

    def dial(self, name: str | None) -> tuple[str, Channel]:
        near, far = channel_pair()
        threading.Thread(target=self.conversations.hold, args=(Channel(far),), daemon=True).start()
        return "toy", near


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    own = Toy()
    monkeypatch.setattr(client.place, "dial", own.dial)
    yield own
    own.gone.set()


def test_who_asks_later_hears_why_the_lab_has_ended(toy: Toy) -> None:
    """The reason came when nobody waited for an answer. An error is no end."""
    with StandingLab(None) as lab:
        with pytest.raises(UsageError, match="what"):
            lab.ask("nonsense")
        assert lab.ask("echo")[0] == {"said": "echo"}
        toy.conversations.end(REASON)
        with pytest.raises(FabricError, match=r"^the lab toy has ended: ibsim died \(signal 9\)$"):
            lab.ask("echo")


def test_a_capture_that_ends_with_the_lab_can_say_why(toy: Toy) -> None:
    with StandingLab(None) as lab:
        assert lab.ask("echo")[0] == {"said": "echo"}
        toy.conversations.end(REASON)
        assert lab.parting() == REASON


def test_a_lab_that_is_up_has_not_parted(toy: Toy) -> None:
    """A program that somebody has killed is no sign of its end."""
    with StandingLab(None) as lab:
        assert lab.parting() is None


def test_who_waits_for_an_answer_hears_why_the_lab_has_ended(toy: Toy) -> None:
    """What was asked has found that a process is gone, before anybody knew which."""

    def end() -> None:
        toy.desk.asked.wait()
        toy.conversations.end(REASON)

    threading.Thread(target=end, daemon=True).start()
    with (
        StandingLab(None) as lab,
        pytest.raises(FabricError, match=r"^the lab toy has ended: ibsim died \(signal 9\)$"),
    ):
        lab.ask("shim")


def test_a_lab_that_says_nothing_has_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its owner was killed."""
    near, far = channel_pair()
    monkeypatch.setattr(client.place, "dial", lambda name: ("toy", near))
    far.close()
    with StandingLab(None) as lab, pytest.raises(FabricError, match=r"^the lab toy has ended$"):
        lab.ask("echo")
