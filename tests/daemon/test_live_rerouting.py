"""Rerouting in a running lab: routes avoid a lost link and return to it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.support.background_lab import at_home, faults_of, lab_up, status_of
from tests.support.user import ROOT, SECONDS, User, wait

pytestmark = pytest.mark.timing

CLOS = """
name: clos
slowdown: 100
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {pfc: {}, routing: {convergence: 20us}}
"""
FLAP = "{name: flap, for: 3ms, link-flap: {cable: leaf1:spine1, period: 1ms, down: 500us}}"
SPRAY = "switches.routing.kind=spray"


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def reaches_all(user: User) -> bool:
    """Whether h1 reaches both hosts of leaf2 without losing a packet."""
    pings = " && ".join(map(pings_of, ("h3", "h4")))
    return user.run_emu("exec", "h1", "--", "sh", "-c", pings).out.count(" 0% packet loss") == 8


def pings_of(far: str) -> str:
    """A command for four pings. One ping of four packets waits for the last answer only twice as
    long as for the others. Mininet replaces words that are names of hosts."""
    return f"for _ in 1 2 3 4; do ping -c 1 -W 5 {far} ; done"


def wait_for_routes(user: User, changes: int) -> None:
    """Wait until the lab has handled this many link changes and all switches use the new routes."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        (lab,) = status_of(user)
        seen = lab["links"]
        if len(seen) >= changes and all(one["in_force_ns"] is not None for one in seen):
            return
    raise AssertionError(f"routes were not changed {changes} times: {seen}")


def groups(user: User, switch: str) -> str:
    command = ("ovs-ofctl", "-O", "OpenFlow15", "dump-groups", switch)
    ended = user.run_emu("exec", switch, "--", *command)
    assert ended.code == 0, ended.err
    return ended.out.partition("\n")[2]


@pytest.mark.parametrize(("plane", "more"), [("ovs", ()), ("ovs", (SPRAY,)), ("shim", ())])
def test_routes_avoid_a_lost_link_and_return(me: User, plane: str, more: tuple[str, ...]) -> None:
    """The faults are a link that is down, a switch that is down, and a link that flaps faster
    than Open vSwitch loads its tables. The groups are as before at the end."""
    settings = [word for own in (f"plane={plane}", *more) for word in ("--set", own)]
    with lab_up(me, CLOS, *settings):
        before = groups(me, "leaf1") if plane == "ovs" else ""
        changes = 0
        for fault in ("link-down: {cable: leaf1:spine1}", "switch-down: {switch: spine2}"):
            assert me.run_emu("fault", "set", f"{{name: cut, {fault}}}").code == 0
            wait_for_routes(me, changes := changes + 1)
            assert reaches_all(me), fault
            if plane == "ovs":
                assert "bucket" not in groups(me, "leaf1")
            assert me.run_emu("fault", "clear", "cut").code == 0
            wait_for_routes(me, changes := changes + 1)
            assert reaches_all(me), f"after {fault}"
        assert me.run_emu("fault", "set", FLAP).code == 0
        wait_for_routes(me, changes + 6)
        assert reaches_all(me), "after a flapping link"
        if plane == "ovs":
            assert groups(me, "leaf1") == before != ""


WORDS = f"""\
link leaf1 spine1 down
sh sleep 0.5
h1 {pings_of("h3")}
h2 {pings_of("h3")}
h1 {pings_of("h4")}
link leaf1 spine1 up
sh sleep 0.5
h1 {pings_of("h3")}
h2 {pings_of("h4")}
"""


def test_mininets_link_down_reroutes(myself: User, tmp_path: Path) -> None:
    """`emu shell` and `mn` take cables down in the same way."""
    words = tmp_path / "words"
    words.write_text(WORDS)
    mn = ("--custom", str(ROOT / "emu" / "mn.py"), "--link", "emu,slowdown=10")
    topo = ("--topo", "leaf_spine,2,2,2", "--test", "none", "--pre", str(words))
    ended = wait(myself.start("mn", *mn, *topo))
    assert ended.code == 0, ended.err
    assert re.findall(r"(\d+)% packet loss", ended.out + ended.err) == ["0"] * 5 * 4


@pytest.mark.parametrize("setting", ["plane=shim", "fabric=ib"])
def test_the_prompt_knows_cables_without_open_vswitch(me: User, setting: str) -> None:
    """Mininet has no switches there, but the fabric has cables."""
    with lab_up(me, CLOS, "--set", setting):
        shell = me.emu("shell")
        _, err = shell.communicate(b"link leaf1 spine1 down\nlink leaf1 h3 down\n", SECONDS)
        assert b"no cable joins leaf1 and h3" in err
        assert [fault["place"] for fault in faults_of(me)] == ["leaf1:spine1"]
