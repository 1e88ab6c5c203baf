"""Notes about default routes that a program in a lab removes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from emu.lab import netns
from emu.lab.command import run
from emu.lab.route_watch import RouteWatch
from tests.support.needs import need
from tests.support.waiting import eventually

_ROUTE = "default via 169.254.0.1 dev near onlink"
_LINKS = f"""\
link add name near type veth peer name far
link set near up
link set far up
address add 10.0.0.1/32 dev near
route add {_ROUTE}
"""


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    """A thread in a network namespace of its own."""
    need("namespaces", "veth")
    with ThreadPoolExecutor(1, initializer=netns.unshare) as thread:
        yield thread


def _watch(links: str) -> RouteWatch:
    run(["ip", "-batch", "-"], stdin=links)
    return RouteWatch({"h1": threading.get_native_id()})


def _ip(elsewhere: ThreadPoolExecutor, command: str) -> None:
    elsewhere.submit(run, ["ip", *command.split()]).result()


@pytest.mark.parametrize("removal", ["route del default", "link set near down"])
def test_a_removed_default_route_is_noted(elsewhere: ThreadPoolExecutor, removal: str) -> None:
    """The note stays, and says later that the route was missing."""
    watch = elsewhere.submit(_watch, _LINKS).result()
    assert watch.notes == []
    _ip(elsewhere, removal)
    eventually(lambda: any("route of h1 is missing" in note for note in watch.notes))
    _ip(elsewhere, "link set near up")
    _ip(elsewhere, f"route add {_ROUTE}")
    eventually(lambda: any("route of h1 was missing" in note for note in watch.notes))


def test_other_routes_are_not_noted(elsewhere: ThreadPoolExecutor) -> None:
    """The default route that is removed afterwards shows that events arrive."""
    watch = elsewhere.submit(_watch, _LINKS).result()
    _ip(elsewhere, "route add 10.1.0.0/16 dev near")
    _ip(elsewhere, "route del 10.1.0.0/16")
    assert watch.notes == []
    _ip(elsewhere, "route del default")
    eventually(lambda: bool(watch.notes))
