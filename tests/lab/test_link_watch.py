"""Notes about links that a program in a lab sets down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from emu.lab import netns
from emu.lab.command import run
from emu.lab.link_watch import LinkWatch
from tests.support.needs import need
from tests.support.waiting import eventually

_LINKS = """\
link add name near type veth peer name far
link set near up
link set far up
"""


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    """A thread in a network namespace of its own."""
    need("namespaces", "veth")
    with ThreadPoolExecutor(1, initializer=netns.unshare) as thread:
        yield thread


def _watch() -> LinkWatch:
    run(["ip", "-batch", "-"], stdin=_LINKS)
    return LinkWatch(threading.get_native_id())


def _ip(elsewhere: ThreadPoolExecutor, *words: str) -> None:
    elsewhere.submit(run, ["ip", *words]).result()


def test_a_link_that_is_set_down_is_noted(elsewhere: ThreadPoolExecutor) -> None:
    """The note stays, and says later that the link was down."""
    watch = elsewhere.submit(_watch).result()
    assert watch.notes == []
    _ip(elsewhere, "link", "set", "far", "down")
    eventually(lambda: any("link of near is down" in note for note in watch.notes))
    _ip(elsewhere, "link", "set", "far", "up")
    eventually(lambda: any("link of near was down" in note for note in watch.notes))


def test_interfaces_added_later_are_not_noted(elsewhere: ThreadPoolExecutor) -> None:
    """They are not cables of the lab. The link set down afterwards shows that events arrive."""
    watch = elsewhere.submit(_watch).result()
    _ip(elsewhere, "link", "add", "name", "new", "type", "bridge")
    _ip(elsewhere, "link", "set", "far", "down")
    eventually(lambda: any("near" in note for note in watch.notes))
    assert not any("new" in note for note in watch.notes)
