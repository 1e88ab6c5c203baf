"""Diagnoses of a running lab in `emu status`, `emu watch` and `emu events`."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.support.background_lab import at_home, lab_up, status_of, watch_events
from tests.support.user import SECONDS, User, wait

pytestmark = pytest.mark.timing

SPEC = """
name: sick
plane: shim
slowdown: 4000
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {pfc: {}}
traffic: [{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 1GB}]
"""
AROUND = """
name: sick
fabric: ib
plane: shim
slowdown: 4000
topology: {kind: ring, switches: 5, hosts_per_switch: 1}
subnet: {engine: minhop}
traffic: [{name: round, pattern: pair, from: h1-h5, to: [h3, h4, h5, h1, h2], size: 100MB}]
"""
STORM = "{name: mad, pause-storm: {host: h3, priority: 3}}"
CUT = "{name: cut, link-down: {cable: 'leaf1:spine1'}}"


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def wait_for_sentence(user: User, words: str) -> str:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        (lab,) = status_of(user)
        said = [sentence for sentence in lab["diagnosis"] if words in sentence]
        if said:
            return str(said[0])
    raise AssertionError(f"nobody said {words}: {lab['diagnosis']}")


def test_a_lab_reports_a_storm_and_a_lost_link(me: User) -> None:
    """The reports are sentences, and events with their causes."""
    with lab_up(me, SPEC):
        events = watch_events(me)
        assert events.stdout is not None
        assert me.run_emu("traffic", "start").code == 0
        assert json.loads(events.stdout.readline())["event"] == "traffic-started"
        assert me.run_emu("fault", "set", STORM).code == 0
        assert "h3 paused its leaf" in wait_for_sentence(me, "Pause storm")
        watched = me.run_emu("watch", "--count", "1")
        assert "! Pause storm" in watched.out, watched
        assert me.run_emu("fault", "clear", "mad").code == 0
        assert me.run_emu("fault", "set", CUT).code == 0
        said = wait_for_sentence(me, "routes have avoided it")
        assert said.startswith("Link down: leaf1:spine1, by the fault cut;")
        assert me.run_emu("fault", "clear", "cut").code == 0
        told = [json.loads(events.stdout.readline())]
        while told[-1].get("cause") != "leaf1:spine1 up":
            told.append(json.loads(events.stdout.readline()))
        events.send_signal(signal.SIGINT)
        assert wait(events).code == 130
    changes = [
        (event["event"], event["where"], event.get("cause") or event.get("by"))
        for event in told
        if not {"count", "ns"} & set(event) or event["event"].startswith("pause-storm")
    ]
    for expected in (
        ("fault-began", "mad", None),
        ("pause-storm-began", "leaf2:h3", "h3"),
        ("pause-storm-ended", "leaf2:h3", "h3"),
        ("link-down", "leaf1:spine1", "the fault cut"),
        ("routes-converged", "", "leaf1:spine1 down"),
        ("link-up", "leaf1:spine1", "the fault cut is over"),
        ("routes-converged", "", "leaf1:spine1 up"),
    ):
        assert expected in changes, changes


def test_a_lab_reports_a_credit_deadlock(me: User) -> None:
    """Shortest paths around a ring cause the deadlock.

    The report of a run has the same sentence.
    """
    with lab_up(me, AROUND):
        assert me.run_emu("traffic", "start").code == 0
        said = wait_for_sentence(me, "waiting for each other's credit")
        assert said.startswith("Deadlock (since traffic began): at ")
        assert "! Deadlock (since traffic began)" in me.run_emu("watch", "--count", "1").out
