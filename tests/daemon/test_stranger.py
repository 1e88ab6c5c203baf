"""A new user's first commands after the README, and their likely mistakes."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emu.wire.inspect import inspect
from tests.support.background_lab import assert_gone, at_home, faults_of, lab_up, status_of
from tests.support.lab_fabrics import ROCE
from tests.support.user import User, wait

STORM = """
name: storm
slowdown: 2000
topology: {kind: dumbbell, hosts_per_side: 2}
switches: {pfc: {priorities: [3], xoff: 40KB, xon: 20KB}}
traffic: [{name: flow, pattern: pair, from: h3, to: h1, op: write, size: 4MB}]
faults: [{at: 20us, pause-storm: {host: h1, priority: 3}}]
time_limit: 20ms
"""

NOWHERE = {"HOME": "/nowhere", "XDG_RUNTIME_DIR": "", "XDG_CACHE_HOME": ""}


@pytest.fixture
def stranger(ordinary: User) -> User:
    """An ordinary user with a runtime folder."""
    return at_home(ordinary)


def test_the_tests_folder_stays_readable_for_ordinary_users(
    ordinary: User, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Pytest closes its base folder to others when root starts another session."""
    tmp_path_factory.getbasetemp().chmod(0o700)
    (tmp_path / "spec").write_text("seen")
    assert wait(ordinary.start("cat", str(tmp_path / "spec"))).out == "seen"


def test_a_pause_storm_is_shown_captured_and_cleared(stranger: User) -> None:
    """The storm pauses h1's port and the switch behind it.

    Once it is cleared, all bytes arrive, and the next traffic has no storm.
    Nothing is left after `down`.
    """
    capture = stranger.home / "storm.pcapng"
    with lab_up(stranger, STORM) as lab:
        capturing = stranger.emu("capture", "left:h1", "-w", str(capture))
        assert stranger.run_emu("traffic", "start").code == 0
        shown = stranger.run_emu("watch", "--count", "3", "--interval", "1")
        for row in (r"left:h1 .* 100% ", r"left:right .* [1-9]\d* +- +- "):
            assert re.search(f"^{row}", shown.out, re.MULTILINE), (row, shown)
        capturing.send_signal(signal.SIGINT)
        assert wait(capturing).code == 0
        assert inspect(capture).pause_frames > 0
        capture.unlink()
        (storm,) = faults_of(stranger)
        assert (storm["name"], storm["state"]) == ("pause-storm-1", "active")
        assert storm["hits"] > 0
        assert stranger.run_emu("fault", "clear", "pause-storm-1").code == 0
        (flow,) = _when_over(stranger)["flows"]
        assert flow["completed"]
        assert faults_of(stranger) == []
        assert stranger.run_emu("traffic", "start").code == 0
        (again,) = _when_over(stranger)["flows"]
        assert again["end_ns"] < flow["end_ns"]
        assert stranger.run_emu("down").code == 0
        assert_gone(lab)


def test_a_nic_fault_outlasts_the_traffic(stranger: User) -> None:
    """The fault may be set before or during traffic and cleared in between, like one of a cable."""
    with lab_up(stranger, STORM, "--set", "faults=[]"):
        assert stranger.run_emu("fault", "set", "{name: mad, pause-storm: {host: h1}}").code == 0
        (waiting,) = faults_of(stranger)
        assert (waiting["state"], waiting["at_ns"], waiting["hits"]) == ("waiting", None, 0)
        assert stranger.run_emu("traffic", "start").code == 0
        slow = "{name: slow, slow-receiver: {host: h1, rate: 1Gbit}}"
        assert stranger.run_emu("fault", "set", slow).code == 0
        twice = stranger.run_emu("fault", "set", slow.replace("name: slow", "name: slower"))
        says = "h1 is a slow receiver already; `emu fault clear slow` first\n"
        assert (twice.code, twice.err) == (2, says)
        storm, slow_receiver = faults_of(stranger)
        assert storm["state"] == slow_receiver["state"] == "active"
        assert 0 < storm["at_ns"] < slow_receiver["at_ns"]
        assert stranger.run_emu("traffic", "stop").code == 0
        before = {fault["name"]: fault["hits"] for fault in faults_of(stranger)}
        assert before["mad"] > 0
        assert stranger.run_emu("fault", "clear", "slow").code == 0
        assert stranger.run_emu("traffic", "start").code == 0
        stranger.run_emu("watch", "--count", "2", "--interval", "0.5")
        (storm,) = faults_of(stranger)
        assert storm["hits"] > before["mad"], "the new NIC storms, too"


def _when_over(user: User) -> dict[str, Any]:
    """The status of the traffic as soon as it has ended."""
    traffic: dict[str, Any]
    while (traffic := status_of(user)[0]["traffic"])["state"] == "running":
        user.run_emu("watch", "--count", "2", "--interval", "0.5")
    return traffic


def test_commands_without_a_lab_get_a_remedy(stranger: User) -> None:
    """With labs up, the error suggests the nearest name."""
    for verb in (("down",), ("exec", "h1", "true"), ("watch",), ("capture", "left:h1")):
        nobody = stranger.run_emu(*verb)
        assert (nobody.code, nobody.err) == (2, "no lab is up; start one with `emu up SPEC`\n")
    nan = stranger.run_emu("watch", "--interval", "nan")
    assert (nan.code, nan.err) == (
        2,
        "--interval is not a number of seconds; write for example 0.5\n",
    )
    homeless = replace(stranger, environment=stranger.environment | NOWHERE).run_emu("status")
    assert homeless.code == 2
    assert "set XDG_RUNTIME_DIR to a folder of your own" in homeless.err
    with lab_up(stranger, ROCE):
        wrong = stranger.run_emu("down", "pairs")
        assert (wrong.code, wrong.err) == (2, "there is no lab 'pairs' (did you mean 'pair'?)\n")
        again = stranger.run_emu("up", stranger.home.parent / "standing.emu.yml")
        assert again.code == 2
        assert "a lab named pair is up already; end it with `emu down pair`" in again.err
        assert len(status_of(stranger)) == 1
