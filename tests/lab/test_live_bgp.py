"""BGP in labs that stay up: the real FRR on every switch, on both clocks."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.background_lab import at_home, lab_up, status_of
from tests.support.exact_lab import EXACT, emu, finish_traffic, time_of
from tests.support.needs import need
from tests.support.traces import Inside
from tests.support.user import User, wait
from tests.support.waiting import eventually

SPEC = """
name: told
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 1}
switches: {routing: {control_plane: bgp, bgp: {keepalive: 1s, hold: 3s}}}
traffic: [{name: f, pattern: pair, from: h1, to: h2, size: 100KB}]
slowdown: 4
"""
"""At so small a slowdown the machine keeps up with packets of BGP and pings."""
BFD = SPEC.replace("hold: 3s", "hold: 3s, bfd: {interval: 50ms}")
CUT = "{name: cut, link-down: {cable: leaf1:spine1}}"
SILENT = "{name: silent, loss: {cable: leaf1:spine1, every: 1}}"
PING = ("exec", "h2", "--", "ping", "-c", "1", "-W", "10", "h1")
MS = 10**9
"""Picoseconds."""


@pytest.fixture(autouse=True)
def _frr() -> None:
    need("FRR")


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def on_switch(user: User, switch: str, *command: str) -> str:
    ended = user.run_emu("exec", switch, "--", *command)
    assert ended.code == 0, ended
    return ended.out


def next_hops(user: User, switch: str, host: str) -> set[str]:
    """The ports towards a host's address, in the switch's kernel."""
    (route,) = json.loads(on_switch(user, switch, "ip", "-j", "route", "show", host))
    return {hop["dev"] for hop in route.get("nexthops", [route])}


def flows_of(user: User, switch: str) -> str:
    """Open vSwitch's flow to h1 and its groups, without counts."""
    flows = on_switch(user, switch, "ovs-ofctl", "--no-stats", "dump-flows", switch)
    groups = on_switch(user, switch, "ovs-ofctl", "-O", "OpenFlow15", "dump-groups", switch)
    return "".join(line for line in flows.splitlines() if "nw_dst=10.0.0.1 " in line) + groups


def counters(user: User, port: str) -> dict[str, int]:
    ended = user.run_emu("counters", port, "--json")
    assert ended.code == 0, ended.err
    found: dict[str, int] = json.loads(ended.out)["ports"][port]
    return found


def sent_by_class(seen: dict[str, int]) -> dict[int, int]:
    """The packets that left a port, by class; none of the others."""
    found = ((re.fullmatch(r"tx_prio(\d)_packets", name), count) for name, count in seen.items())
    return {int(match[1]): count for match, count in found if match and count}


def daemon(inside: Inside, name: str, switch: str) -> int:
    """The process of a switch's daemon."""
    (pid,) = (
        pid
        for pid, command in inside.commands.items()
        if f"/run/frr/{switch}/{name}.pid" in command
    )
    return pid


def change_took_ms(user: User) -> float:
    """Emulated time from the latest change of links to the latest change of routes."""
    change = status_of(user)[0]["links"][-1]
    return float(change["in_force_ns"] - change["at_ns"]) / 1e6


def test_bgp_crosses_the_cables_and_routes_around_a_lost_one(user: User) -> None:
    """As root and as anybody. The other leaf learns of the loss some 125 ms later. Open vSwitch and
    the switch's kernel have the same routes."""
    me = at_home(user)
    with lab_up(me, SPEC):
        summary = on_switch(me, "leaf1", "vtysh", "-c", "show bgp summary")
        assert "spine1(leaf1-eth2)" in summary
        assert "spine2(leaf1-eth3)" in summary
        assert on_switch(me, "leaf1", "cat", "/etc/frr/frr.conf").startswith("frr defaults")
        seen = counters(me, "leaf1:spine1")
        sent = sent_by_class(seen)
        assert sent.keys() == {7}
        assert sent[7] <= seen["from_cpu"] <= sent[7] + 1  # one may wait in its queue
        assert seen["to_cpu"] > 0
        assert next_hops(me, "leaf2", "10.0.0.1") == {"leaf2-eth2", "leaf2-eth3"}
        whole = flows_of(me, "leaf2")
        assert "group:" in whole
        assert me.run_emu(*PING).code == 0
        emu(me, "fault", "set", CUT)
        eventually(lambda: next_hops(me, "leaf2", "10.0.0.1") == {"leaf2-eth3"})
        eventually(lambda: "output:3" in flows_of(me, "leaf2"))
        assert me.run_emu(*PING).code == 0
        assert 50 < change_took_ms(me) < 1000
        emu(me, "fault", "clear", "cut")
        eventually(lambda: flows_of(me, "leaf2") == whole)


def test_captured_packets_are_bgp_and_bfd(me: User, tmp_path: Path) -> None:
    """As tshark reads them: BFD at its interval of emulated time, and BGP's NOTIFICATION when an
    operator clears a session."""
    need("tshark")
    file = tmp_path / "cable.pcapng"
    with lab_up(me, BFD):
        process = me.emu("capture", "leaf1:spine1", "-w", file, "--count", "40")
        on_switch(me, "leaf1", "vtysh", "-c", "clear bgp leaf1-eth2")
        assert wait(process).code == 0
    fields = ("-e", "frame.time_epoch", "-e", "bfd.sta", "-e", "bgp.type", "-e", "ipv6.tclass.dscp")
    tshark = shutil.which("tshark")
    assert tshark is not None
    shown = subprocess.run(
        [tshark, "-r", str(file), "-T", "fields", *fields],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split("\t") for line in shown.splitlines()]
    up = [float(at) for at, state, _, dscp in rows if state and dscp == "48"]
    assert len(up) > 10
    assert "3" in {kind for _, _, kinds, _ in rows for kind in kinds.split(",")}
    assert max(up) - min(up) < 2  # 40 packets of 50 ms each at most, of emulated time


def test_silent_failure_is_found_by_bfd(me: User) -> None:
    """Every packet on the cable is lost, those of BFD too; the ports stay up."""
    with lab_up(me, BFD):
        emu(me, "fault", "set", SILENT)
        eventually(lambda: next_hops(me, "leaf2", "10.0.0.1") == {"leaf2-eth3"})
        eventually(lambda: next_hops(me, "leaf1", "10.0.0.2") == {"leaf1-eth3"})
        assert me.run_emu(*PING).code == 0
        assert counters(me, "leaf1:spine1")["from_cpu"] > 0


def test_dead_daemon_is_told_and_its_neighbours_leave_it(me: User) -> None:
    with lab_up(me, SPEC) as inside:
        os.kill(daemon(inside, "bgpd", "spine1"), signal.SIGKILL)
        eventually(lambda: next_hops(me, "leaf1", "10.0.0.2") == {"leaf1-eth3"})
        told = "bgpd on spine1 has ended; zebra takes its routes out, and its neighbours leave it"
        eventually(lambda: told in status_of(me)[0]["notes"])
        assert me.run_emu(*PING).code == 0


def test_operators_change_the_configuration(me: User) -> None:
    """By vtysh, as on a switch."""
    with lab_up(me, SPEC, "--set", "plane=shim"):
        shut = ("configure terminal", "router bgp", "neighbor leaf1-eth2 shutdown")
        on_switch(me, "leaf1", "vtysh", *(word for line in shut for word in ("-c", line)))
        eventually(lambda: next_hops(me, "leaf1", "10.0.0.2") == {"leaf1-eth3"})
        eventually(lambda: next_hops(me, "leaf2", "10.0.0.1") == {"leaf2-eth3"})
        assert me.run_emu(*PING).code == 0


def test_refused_configuration_brings_nothing_up(me: User, tmp_path: Path) -> None:
    conf = tmp_path / "leaf1.conf"
    conf.write_text("router bgp 65001\n neighbour leaf1-eth2 remote-as external\n")
    spec = tmp_path / "refused.emu.yml"
    leaf1 = f"hold: 3s}}}}, nodes: {{leaf1: {{routing: {{bgp: {{frr_conf: {conf}}}}}}}}}}}"
    spec.write_text(SPEC.replace("hold: 3s}}}", leaf1))
    ended = me.run_emu("up", spec)
    assert ended.code == 4
    assert "FRR refused the configuration of leaf1" in ended.err
    assert "neighbour leaf1-eth2" in ended.err
    assert status_of(me) == []


def test_exact_clock_waits_for_bgp(me: User) -> None:
    """Emulated time stands while FRR reacts, and its routes are in force so much emulated time
    after the loss as it took."""
    with lab_up(me, SPEC, *EXACT):
        whole = flows_of(me, "leaf2")
        emu(me, "fault", "set", CUT)
        eventually(lambda: time_of(me)[0] == "stands" and time_of(me)[1] > 50 * MS)
        assert next_hops(me, "leaf2", "10.0.0.1") == {"leaf2-eth3"}
        eventually(lambda: "output:3" in flows_of(me, "leaf2"))
        assert 50 < change_took_ms(me) < 1000
        emu(me, "traffic", "start")
        (flow,) = finish_traffic(me)
        assert flow["end_ns"] is not None
        emu(me, "fault", "clear", "cut")
        eventually(lambda: flows_of(me, "leaf2") == whole)
        eventually(lambda: time_of(me)[0] == "stands")
        assert 100 < change_took_ms(me) < 20_000


def test_exact_clock_with_a_dead_daemon(me: User) -> None:
    """Later changes of links do not wait for it."""
    with lab_up(me, SPEC, *EXACT) as inside:
        os.kill(daemon(inside, "bgpd", "spine1"), signal.SIGKILL)
        eventually(lambda: next_hops(me, "leaf1", "10.0.0.2") == {"leaf1-eth3"})
        emu(me, "fault", "set", "{link-down: {cable: leaf2:spine2}}")
        eventually(lambda: status_of(me)[0]["links"][-1]["in_force_ns"] is not None)
        assert any(note.startswith("bgpd on spine1") for note in status_of(me)[0]["notes"])


def test_prompt_runs_programs_on_a_switch(me: User, tmp_path: Path) -> None:
    spec = tmp_path / "told.emu.yml"
    spec.write_text(SPEC)
    process = me.emu("shell", spec)
    out, err = process.communicate(b"leaf1 ip route show 10.0.0.2\nexit\n", timeout=120)
    assert b"proto bgp" in err, (out, err)
