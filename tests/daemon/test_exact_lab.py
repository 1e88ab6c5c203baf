"""Labs in the background on the exact clock: their time runs with traffic and can be stopped, and
their results are those of the virtual clock in any case."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.background_lab import (
    assert_gone,
    at_home,
    faults_of,
    lab_up,
    owner_of_lab,
    status_of,
)
from tests.support.exact_lab import (
    EXACT,
    emu,
    finish_traffic,
    flow_times,
    on_virtual_clock,
    refused,
    time_of,
)
from tests.support.user import User
from tests.support.waiting import eventually

SPEC = """
name: still
fabric: roce
seed: 3
topology:
  kind: leaf-spine
  spines: 2
  leaves: 2
  hosts_per_leaf: 2
  links: {host: {rate: 100Gbit, delay: 300ns}, fabric: {rate: 100Gbit, delay: 500ns}}
switches: {pfc: {}}
hosts: {nic: {timeout: 6}}
traffic: [{name: in, pattern: incast, from: h2-h4, to: h1, op: write, size: 150KB}]
faults:
  - {at: 9us, delay: {cable: "leaf2:h3", by: 1us}}
  - {at: 4us, loss: {cable: "leaf1:h1", probability: 3%}}
  - {at: 6us, for: 4us, link-flap: {cable: "leaf1:h2", period: 2us, down: 200ns}}
  - {at: 5us, slow-receiver: {host: h1, rate: 60Gbit}}
"""
"""Faults at both ends of hosts' cables, whose random numbers depend on their places here."""
ON_INFINIBAND = SPEC.replace("roce", "ib")
QUIET = SPEC[: SPEC.index("faults:")]
INIT = (sys.executable, "emu-lab")
US = 1_000_000
"""Picoseconds."""


@pytest.fixture
def me(myself: User) -> User:
    """The user who runs the tests, with a runtime folder."""
    return at_home(myself)


@pytest.fixture
def other(ordinary: User) -> User:
    """An ordinary user with a runtime folder."""
    return at_home(ordinary)


def test_pauses_and_steps_change_no_times(me: User, tmp_path: Path) -> None:
    """Traffic that waits, is stepped through and goes on ends as on the virtual clock."""
    with lab_up(me, SPEC, *EXACT):
        assert time_of(me) == ("stands", 0)
        emu(me, "pause")
        emu(me, "traffic", "start")
        assert time_of(me) == ("paused", 0)
        assert emu(me, "step", "7us") == "still: paused at 7us\n"
        emu(me, "step", "3500ns")
        assert time_of(me) == ("paused", 10_500_000)
        assert status_of(me)[0]["traffic"]["state"] == "running"
        emu(me, "continue")
        flows = finish_traffic(me)
        assert time_of(me)[0] == "stands"
    assert flow_times(flows) == on_virtual_clock(SPEC, tmp_path)


def test_an_ordinary_user_pauses_infiniband(other: User, tmp_path: Path) -> None:
    """The times are those of the virtual clock, too."""
    with lab_up(other, ON_INFINIBAND, *EXACT):
        emu(other, "traffic", "start")
        emu(other, "pause")
        state, now_ps = time_of(other)
        emu(other, "step", "3us")
        assert (state, time_of(other)) == ("paused", ("paused", now_ps + 3 * US))
        emu(other, "continue")
        flows = finish_traffic(other)
    assert flow_times(flows) == on_virtual_clock(ON_INFINIBAND, tmp_path)


def counters_of(user: User) -> dict[str, Any]:
    ended = user.run_emu("counters", "--json")
    assert ended.code == 0, ended.err
    counted: dict[str, Any] = json.loads(ended.out)
    return counted


def test_two_steps_are_one_of_twice_the_time(me: User) -> None:
    """Two labs have the same counters at the same time, which does not pass between two looks."""
    seen = []
    for steps in (("4us", "4us"), ("8us",)):
        with lab_up(me, SPEC, *EXACT):
            emu(me, "pause")
            emu(me, "traffic", "start")
            for step in steps:
                emu(me, "step", step)
            seen += [counters_of(me), counters_of(me)]
    assert seen[0]["time_ns"] == 8000
    assert seen[0]["hosts"]["h1"]["rx_packets"] > 0
    assert all(one == seen[0] for one in seen)


def test_traffic_is_stopped_and_started_again(me: User) -> None:
    """A pause ends with the traffic's stop or not; the next traffic begins at that time."""
    with lab_up(me, QUIET, *EXACT):
        emu(me, "traffic", "start")
        before = flow_times(finish_traffic(me))
        began = time_of(me)[1]
        emu(me, "pause")
        emu(me, "traffic", "start")
        emu(me, "step", "5us")
        emu(me, "traffic", "stop")
        assert time_of(me) == ("paused", began + 5 * US)
        emu(me, "continue")
        eventually(lambda: time_of(me)[0] == "stands")
        emu(me, "traffic", "start")
        assert flow_times(finish_traffic(me)) == before


def test_a_fault_begins_at_the_instant_of_the_pause(me: User) -> None:
    """Also one of a direction of a host's cable that the NICs emulate."""
    with lab_up(me, QUIET, *EXACT):
        emu(me, "pause")
        emu(me, "traffic", "start")
        emu(me, "step", "6us")
        for name, direction in (("data", "out"), ("acks", "in")):
            cable = f"{{cable: leaf1:h1, direction: {direction}, every: 7}}"
            emu(me, "fault", "set", f"{{name: {name}, loss: {cable}}}")
        for fault in faults_of(me):
            assert (fault["at_ns"], fault["packets_seen"], fault["state"]) == (6000, 0, "active")
        emu(me, "step", "20us")
        seen = {fault["name"]: fault["packets_seen"] for fault in faults_of(me)}
        assert seen["data"] > seen["acks"] > 0
        emu(me, "fault", "clear", "data")
        assert [fault["name"] for fault in faults_of(me)] == ["acks"]


def test_programs_let_time_run_unless_it_is_paused(me: User) -> None:
    """A ping that gets its answer has let some emulated time pass."""
    with lab_up(me, QUIET, *EXACT):
        ping = ("exec", "h1", "--", "ping", "-c", "1", "-W", "2", "h4-eth0")
        assert me.run_emu(*ping).code == 0
        eventually(lambda: time_of(me)[0] == "stands")
        assert time_of(me)[1] > 4 * US
        emu(me, "pause")
        assert me.run_emu(*ping).code == 1
        assert time_of(me)[0] == "paused"
        said = refused(me, "exec", "--emulated", "h1", "--", "true")
        assert "--clock real" in said


def test_misuse_is_refused(me: User) -> None:
    assert "no lab is up" in refused(me, "pause")
    with lab_up(me, QUIET, *EXACT):
        assert "is not paused" in refused(me, "continue")
        for wrong in ("0us", "-5us", "0.1ps"):
            assert "only goes forward, by 1ps at least" in refused(me, "step", wrong)
        for wrong in ("soon", "-soon"):
            assert "'soon' is not understood" in refused(me, "step", wrong)
        emu(me, "pause")
        assert "is paused already, at 0s" in refused(me, "pause")


@pytest.mark.parametrize("victim", ["the owner", "the first process"])
def test_a_paused_lab_that_is_killed_leaves_nothing(me: User, victim: str) -> None:
    """With traffic in it. (`lab_up` ends paused labs with `emu down` in the other tests.)"""
    with lab_up(me, QUIET, *EXACT) as lab:
        emu(me, "pause")
        emu(me, "traffic", "start")
        emu(me, "step", "5us")
        pid = owner_of_lab(me) if victim == "the owner" else lab.process(*INIT)
        os.kill(pid, signal.SIGKILL)
        assert_gone(lab)
        assert me.run_emu("status").code == 0


SENDS_ROCE = """
import socket
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.sendto(bytes(200), ("10.0.0.2", 4791))
"""


def test_time_that_failed_ends_the_traffic(me: User) -> None:
    """The NICs do not wait for switches that met a wrong frame; the lab says what it was."""
    with lab_up(me, QUIET, *EXACT):
        emu(me, "pause")
        emu(me, "traffic", "start")
        emu(me, "step", "5us")
        emu(me, "exec", "h1", "--", sys.executable, "-c", SENDS_ROCE)
        eventually(lambda: status_of(me)[0]["traffic"]["state"] == "failed")
        (lab,) = status_of(me)
        assert lab["traffic"]["error"].startswith("this machine changed a frame")
        assert lab["time"]["state"] == "failed"
        again = me.run_emu("traffic", "start")
        assert again.code == 4
        assert "end it with `emu down still`" in again.err


@pytest.mark.parametrize("spec", [QUIET, ON_INFINIBAND], ids=["roce", "infiniband"])
def test_ping_by_name_takes_no_emulated_time(myself: User, spec: str) -> None:
    """Names lead to the management network, which is not part of the fabric."""
    user = at_home(myself)
    with lab_up(user, spec, *EXACT):
        before = time_of(user)
        ping = user.run_emu("exec", "h1", "--", "ping", "-c", "2", "-i", "0.2", "h4")
        assert (ping.code, time_of(user)) == (0, before), ping
        (lab,) = status_of(user)
        assert "management network" in lab["notes"][0]
