"""Labs in the background: they answer until `emu down`, and leave nothing."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest

from tests.support.background_lab import (
    OWNER,
    assert_gone,
    at_home,
    faults_of,
    lab_up,
    owner_of_lab,
    status_of,
    watch_events,
)
from tests.support.lab_fabrics import INFINIBAND, ROCE
from tests.support.traces import Inside
from tests.support.user import SECONDS, User, may_be_anybody, wait
from tests.support.waiting import eventually


@pytest.fixture
def person(user: User) -> User:
    """Root, then an ordinary user, each with a runtime folder."""
    return at_home(user)


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def _events(user: User, until: str) -> list[dict[str, object]]:
    """The events that `emu events` prints while traffic runs, up to the event with this name."""
    watching = watch_events(user)
    assert watching.stdout is not None
    assert user.run_emu("traffic", "start").code == 0
    told: list[dict[str, object]] = []
    while not told or told[-1]["event"] != until:
        line = watching.stdout.readline()
        assert line, wait(watching).err
        told.append(json.loads(line))
    watching.send_signal(signal.SIGINT)
    assert wait(watching).code == 130
    return told


def test_a_lab_answers_until_down(person: User) -> None:
    """The steps are up, status, programs on hosts, traffic twice, and down. Nothing is left."""
    with lab_up(person, ROCE) as lab:
        (told,) = status_of(person)
        assert (told["name"], told["slowdown"], told["traffic"]["state"]) == ("pair", 500, "none")

        ping = person.run_emu("exec", "h1", "--", "ping", "-c", "1", "-W", "5", "h2")
        assert "1 received" in ping.out, ping
        assert person.run_emu("exec", "h1", "sh", "-c", "exit 7").code == 7

        for number in (1, 2):
            events = _events(person, "flow-completed")
            assert {"event": "traffic-started", "number": number}.items() <= events[0].items()
            assert events[-1]["where"] == "flow"
        (told,) = status_of(person)
        assert [flow["completed"] for flow in told["traffic"]["flows"]] == [True]
        assert told["traffic"]["fidelity"]["verdict"] in ("ok", "inconclusive")
        assert told["traffic"]["fidelity"]["late_max_ns"] > 0
        assert person.run_emu("down", "pair").code == 0
        assert_gone(lab)
        assert status_of(person) == []


def test_stopped_infiniband_traffic_starts_again(me: User) -> None:
    """New NICs work with the credits that the old ones left."""
    with lab_up(me, INFINIBAND, "--set", "slowdown=10000", "--set", "traffic.flow.size=4MB"):
        assert me.run_emu("traffic", "start").code == 0
        assert me.run_emu("traffic", "stop").code == 0
        (lab,) = status_of(me)
        assert lab["traffic"]["state"] == "stopped"
        assert _events(me, "flow-completed")


def test_a_slow_receiver_outlives_its_infiniband_nics(me: User) -> None:
    """Other NICs carry IP between workloads. The fault counts the packets of both."""
    with lab_up(me, INFINIBAND, "--set", "traffic.flow.size=1MB"):
        slow = "{name: slow, slow-receiver: {host: h2, rate: 20Gbit}}"
        assert me.run_emu("fault", "set", slow).code == 0
        (fault,) = faults_of(me)
        assert (fault["state"], fault["packets_seen"]) == ("active", 0)
        assert me.run_emu("exec", "h1", "ping", "-c", "3", "-i", "0.2", "h2").code == 0
        assert _events(me, "flow-completed")
        (later,) = faults_of(me)
        assert later["at_ns"] == fault["at_ns"] > 0
        assert later["packets_seen"] == 3 + ceil(1e6 / 4096)
        (flow,) = status_of(me)[0]["traffic"]["flows"]
        assert flow["end_ns"] > 1e6 * 8 / 20


def test_a_fault_of_the_spec_keeps_its_name_until_cleared(me: User) -> None:
    """The fault would begin again with the next workload, so its name
    is free only after `clear`."""
    anew = "{name: brief, pause-storm: {host: h2}}"
    spec = ROCE + "faults: [{name: brief, for: 1us, pause-storm: {host: h1}}]\n"
    with lab_up(me, spec, "--set", "slowdown=10000", "--set", "traffic.flow.size=40MB"):
        assert me.run_emu("traffic", "start").code == 0
        eventually(lambda: [one["state"] for one in faults_of(me)] == ["over"])
        (fault,) = faults_of(me)
        assert fault["place"] == "h1"
        assert me.run_emu("fault", "set", anew).code == 2
        assert me.run_emu("fault", "clear", "brief").code == 0
        assert me.run_emu("fault", "set", anew).code == 0
        (fault,) = faults_of(me)
        assert (fault["place"], fault["state"]) == ("h2", "active")


def test_events_report_the_faults_of_the_spec(me: User) -> None:
    """The events have the lab's times."""
    spec = ROCE + "faults: [{name: brief, for: 1us, pause-storm: {host: h1}}]\n"
    with lab_up(me, spec, "--set", "slowdown=10000", "--set", "traffic.flow.size=2MB"):
        told = [event for event in _events(me, "flow-completed") if event["where"] == "brief"]
        assert [event["event"] for event in told] == ["fault-began", "fault-over"]
        began, over = (event["time_ns"] for event in told)
        assert isinstance(began, int)
        assert over == began + 1000
        assert told[0].items() >= {"kind": "pause-storm", "place": "h1"}.items()


def test_watch_shows_rates_and_counts(me: User) -> None:
    """Without a terminal, watch prints one table after the other. Each lists every port."""
    with lab_up(me, ROCE):
        assert me.run_emu("traffic", "start").code == 0
        shown = me.run_emu("watch", "--count", "2", "--interval", "0.2")
        assert shown.code == 0, shown.err
        for port in ("left:h1", "left:right", "right:left", "right:h2"):
            assert shown.out.count(f"\n{port} ") == 2


def test_counters_are_printed_once(me: User) -> None:
    """The NIC and the port count the same packets of the finished flow."""
    with lab_up(me, ROCE):
        _events(me, "flow-completed")
        told = me.run_emu("counters", "right:h2", "h1", "--json")
        assert told.code == 0, told.err
        document = json.loads(told.out)
        sent = document["hosts"]["h1"]["tx_packets"]
        assert document["ports"]["right:h2"]["tx_prio3_packets"] == sent > 0
        assert me.run_emu("counters", "h7").code == 2


def test_a_closed_terminal_ends_watch_but_not_the_lab(me: User) -> None:
    """A terminal closes with its window or its connection."""
    with lab_up(me, ROCE):
        keyboard, terminal = pty.openpty()
        watching = me.start_on(terminal, "watch")
        os.close(terminal)
        assert os.read(keyboard, 1)
        os.close(keyboard)
        watching.wait(SECONDS)
        assert len(status_of(me)) == 1


def test_mininets_prompt_attaches_to_a_running_lab(me: User) -> None:
    """Leaving the prompt does not end the lab."""
    with lab_up(me, ROCE):
        process = me.emu("shell")
        out, err = process.communicate(
            b"net\nh1 ping -c 1 h2\ncounters left:h1\nexit\n", timeout=SECONDS
        )
        assert process.returncode == 0
        assert b"h1 h1-eth0:left-eth" in err
        assert b"1 received" in err, out
        assert b"tx_prio0_packets" in out + err
        assert len(status_of(me)) == 1


TCP = ROCE.replace("op: write, size: 200KB", "stack: tcp, size: 2GB")
LONG_INFINIBAND = INFINIBAND.replace("200KB", "20MB").replace("slowdown: 500", "slowdown: 20000")

VICTIMS: dict[str, tuple[str, tuple[str, str], str]] = {
    "owner": (ROCE, (sys.executable, OWNER), "its owner process was killed, or the machine was"),
    "unshare": (ROCE, ("unshare", "emu.lab.init"), "the lab's first process died"),
    "first": (ROCE, (sys.executable, "emu-lab"), "the lab's first process died"),
    "forks": (ROCE, (sys.executable, "emu-forks"), "the fork server died (signal 9)"),
    "shim": (ROCE, (sys.executable, "emu-shim"), "the shim died (signal 9)"),
    "ovs-vswitchd": (ROCE, ("ovs-vswitchd", "--detach"), "ovs-vswitchd died (signal 9)"),
    "ovsdb-server": (ROCE, ("ovsdb-server", "--detach"), "ovsdb-server died (signal 9)"),
    "NICs": (TCP, (sys.executable, "emu-nics"), "the NIC process died (signal 9)"),
    "TCP": (TCP, (sys.executable, "emu-tcp"), "the TCP process died (signal 9)"),
    "ibsim": (LONG_INFINIBAND, ("/usr/bin/ibsim", "fabric.net"), "ibsim died (signal 9)"),
    "IB-NICs": (
        LONG_INFINIBAND,
        (sys.executable, "emu-nics"),
        "the NIC process died (signal 9)",
    ),
}
"""Name -> a spec, a process of its lab during traffic, and the reason that `emu status` gives."""


@pytest.mark.parametrize("victim", list(VICTIMS))
def test_a_killed_lab_reports_the_reason_once(me: User, victim: str) -> None:
    """Any process may be killed.

    Later commands find no lab, and the next `emu status` has the reason.
    """
    spec, process, reason = VICTIMS[victim]
    with lab_up(me, spec):
        assert me.run_emu("traffic", "start").code == 0
        lab = Inside(owner_of_lab(me))
        os.kill(lab.process(*process), signal.SIGKILL)
        assert_gone(lab)
        late = me.run_emu("exec", "h1", "true")
        assert (late.code, late.err) == (2, "no lab is up; start one with `emu up SPEC`\n")
        ended = me.run_emu("status", "--json")
        assert (ended.code, json.loads(ended.out)["labs"]) == (0, [])
        (told,) = json.loads(ended.out)["ended"]
        assert told["name"] == "pair"
        assert told["reason"].startswith(reason)
        assert json.loads(me.run_emu("status", "--json").out)["ended"] == []


@pytest.mark.parametrize("victim", ["owner", "first"])
def test_a_lab_ends_on_sigterm_and_reports_it(person: User, victim: str) -> None:
    """`kill` without an option sends SIGTERM. `emu status` reports the end once."""
    with lab_up(person, ROCE) as lab:
        os.kill(lab.process(*VICTIMS[victim][1]), signal.SIGTERM)
        assert_gone(lab)
        told = person.run_emu("status", "pair")
        reason = "its owner or its first process received SIGINT or SIGTERM"
        assert (told.code, told.err) == (
            2,
            f"the lab pair has ended: {reason}; start it again with `emu up SPEC`\n",
        )
        assert "there is no lab" in person.run_emu("status", "pair").err


def _descriptors(process: int) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


@pytest.mark.parametrize("fabric", [ROCE, INFINIBAND, ROCE.replace("op: write", "stack: tcp")])
def test_traffic_leaves_no_descriptor_open(me: User, fabric: str) -> None:
    """Not even after several that finished or were stopped. A command's connection may outlast it
    for a moment, or may not have begun, so one that each leaves open is looked for."""
    with lab_up(me, fabric, "--set", "slowdown=2000") as lab:
        processes = [lab.process(sys.executable, name) for name in ("emu-lab", "emu-shim")]

        def run_traffic() -> None:
            _events(me, "flow-completed")
            eventually(lambda: status_of(me)[0]["traffic"]["state"] != "running")
            assert me.run_emu("traffic", "start").code == 0
            me.run_emu("traffic", "stop")

        run_traffic()
        before = sum(map(_descriptors, processes))
        times = 4
        for _ in range(times):
            run_traffic()
        eventually(lambda: sum(map(_descriptors, processes)) < before + times)


def test_a_lab_outlasts_tcp_traffic_that_is_stopped_at_once(me: User) -> None:
    with lab_up(me, ROCE.replace("op: write", "stack: tcp"), "--set", "slowdown=100000"):
        for _ in range(10):
            assert me.run_emu("traffic", "start").code == 0
            assert me.run_emu("traffic", "stop").code == 0


def test_a_name_is_taken_as_long_as_its_lab_is_up(me: User) -> None:
    """A second lab needs another name.

    With two labs up, a command must name one. A name is free after `down`.
    """
    with lab_up(me, ROCE):
        path = me.home.parent / "standing.emu.yml"
        again = me.run_emu("up", path)
        assert again.code == 2
        assert again.err.startswith("a lab named pair is up already; end it with `emu down pair`")
        assert me.run_emu("up", path, "--name", "other").code == 0
        vague = me.run_emu("exec", "h1", "true")
        assert (vague.code, vague.err) == (
            2,
            "several labs are up; name one of them: other, pair\n",
        )
        assert me.run_emu("exec", "--lab", "other", "h1", "true").code == 0
        near = me.run_emu("down", "other2")
        assert (near.code, near.err) == (2, "there is no lab 'other2' (did you mean 'other'?)\n")
        assert me.run_emu("down", "other").code == 0
        assert me.run_emu("up", path, "--name", "other").code == 0
        assert me.run_emu("down", "other").code == 0


def test_usage_errors_do_not_affect_the_lab(me: User) -> None:
    """Each has exit code 2 and a remedy."""
    with lab_up(me, ROCE.replace("traffic", "capture: []\nverify: []\n#")):
        for words, says in {
            ("exec", "h9", "true"): "there is no host or switch 'h9'; there is h1, h2, left, right",
            ("exec", "h1", "--"): "no command; write it like: emu exec h1 -- ping -c 3 h5",
            ("traffic", "start"): "the lab's spec has no `traffic:`; nothing to start",
            ("traffic", "stop"): "no traffic runs; `emu traffic start` starts it",
        }.items():
            ended = me.run_emu(*words)
            assert (ended.code, ended.err) == (2, f"{says}\n")
        assert me.run_emu("exec", "h1", "no-such-program").code == 127
        assert len(status_of(me)) == 1


def test_a_cut_cable_carries_nothing_until_cleared(me: User) -> None:
    """The fault's drops are visible before the routes have converged."""
    ping = ("exec", "h1", "ping", "-c", "1", "-W", "1", "h2")
    with lab_up(me, ROCE, "--set", "switches.routing.convergence=10s"):
        assert me.run_emu(*ping).code == 0
        assert me.run_emu("fault", "set", "link-down: {cable: 'left:right'}").code == 0
        assert me.run_emu(*ping).code == 1
        (fault,) = faults_of(me)
        assert (fault["name"], fault["place"]) == ("link-down-1", "left:right")
        assert fault["packets_dropped"] > 0
        assert fault["state"] == "active"
        for words, says in {
            ("set", "loss: {cable: 'left:rihgt', every: 2}"): "did you mean 'left:right'?",
            ("set", "link-down: {cable: 'left:h1'}"): "there is a fault 'link-down-1' already",
            ("set", "pause-storm: {host: h3}"): "'pause-storm: {host: h3}': pause-storm.host: "
            "there is no host 'h3'",
            (
                "set",
                "{at: 1ms, delay: {cable: 'left:h1', by: 1us}}",
            ): "at: has no effect in a running lab",
            ("set", "{"): "'{' is not a fault; write it like: loss: {cable: leaf1:h1, every: 256}",
            ("clear", "cut"): "there is no fault 'cut'; there is link-down-1",
        }.items():
            wrong = me.run_emu("fault", *words)
            assert (wrong.code, says in wrong.err) == (2, True), wrong
        assert me.run_emu("fault", "clear", "link-down-1").code == 0
        assert me.run_emu(*ping).code == 0
        assert faults_of(me) == []


def test_faults_have_emulated_times_and_free_their_name(
    me: User,
) -> None:
    """The time is emulated time since the lab came up, as in `up_seconds`."""
    with lab_up(me, ROCE):
        told = []
        for _ in range(2):
            (earlier,) = status_of(me)
            assert me.run_emu("fault", "set", "{for: 1us, link-down: {cable: 'left:h1'}}").code == 0
            (later,) = status_of(me)
            (fault,) = faults_of(me)
            assert (fault["name"], fault["state"]) == ("link-down-1", "over")
            assert fault["end_ns"] - fault["at_ns"] == 1_000
            real_seconds = fault["at_ns"] * 500 / 1e9
            assert earlier["up_seconds"] - 1 < real_seconds < later["up_seconds"] + 1
            told.append(fault["at_ns"])
        assert told[0] < told[1]


MARKING = """
name: marking
slowdown: 500
topology: {kind: dumbbell, hosts_per_side: 1, links: {fabric: {rate: 40Gbit}}}
switches: {pfc: {}, ecn: {kmin: 5KB, kmax: 5KB}}
hosts: {nic: {cc: dcqcn}}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 200KB}]
"""


def _marked(user: User, port: str) -> int:
    """The number of packets that the port has marked since the lab came up, from `emu watch`."""
    shown = user.run_emu("watch", "--count", "1").out.splitlines()
    heads = next(line for line in shown if line.startswith("port ")).split()
    row = next(line for line in shown if line.startswith(f"{port} ")).split()
    count = row[heads.index("CE")]
    return 0 if count == "-" else int(count.replace(",", ""))


def test_clearing_a_misconfiguration_restores_the_setting(
    me: User,
) -> None:
    """The settings are a switch's ECN thresholds and a NIC's reaction to CNPs."""
    with lab_up(me, MARKING):
        late = "wrong-ecn: {switch: left, kmin: 1MB, kmax: 1500KB}"
        assert me.run_emu("fault", "set", late).code == 0
        assert me.run_emu("fault", "set", "ignored-cnps: {host: h1}").code == 0
        assert _events(me, "flow-completed")
        by_name = {fault["name"]: fault for fault in faults_of(me)}
        assert by_name["wrong-ecn-1"]["packets_seen"] > ceil(2e5 / 4096)
        assert (by_name["wrong-ecn-1"]["hits"], _marked(me, "left:right")) == (0, 0)

        again = "{name: more, wrong-ecn: {port: 'left:right', pmax: 1%}}"
        wrong = me.run_emu("fault", "set", again)
        says = "left has wrong ECN thresholds already; `emu fault clear wrong-ecn-1` first\n"
        assert (wrong.code, wrong.err) == (2, says)

        assert me.run_emu("fault", "clear", "wrong-ecn-1").code == 0
        assert _events(me, "flow-completed")
        assert _marked(me, "left:right") > 0
        (ignored,) = faults_of(me)
        assert (ignored["state"], ignored["hits"] > 0) == ("active", True)
        assert me.run_emu("fault", "clear", "ignored-cnps-1").code == 0
        assert faults_of(me) == []


def test_a_lab_that_cannot_be_built_leaves_nothing(me: User) -> None:
    """The user sees the error, and the name is free again."""
    path = me.home / "ebpf.emu.yml"
    path.write_text(ROCE.replace("pfc: {}", "pfc: {}, ecn: {marker: ebpf}"))
    forbid = ("unshare", "--user", "--map-root-user") if may_be_anybody() else ()
    poor = replace(me, prefix=(*me.prefix, *forbid))
    ended = poor.run_emu("up", path)
    assert (ended.code, "run as root, or set switches.ecn.marker" in ended.err) == (3, True), ended
    assert status_of(me) == []
