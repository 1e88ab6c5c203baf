"""OpenSM beside a live fabric: it routes around failures, and its own end is reported."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emu.daemon.client import LabClient
from emu.daemon.messages import BorrowNic, GetPathLevels, RunTool, StartTraffic, Status
from emu.lab.ipc.queries import ClearFault, SetFault
from emu.measure.recording import Recording
from emu.report.store import load_recording
from emu.subnet.subnet import PathSLs
from tests.support.background_lab import at_home, lab_up
from tests.support.lateness import late_packets
from tests.support.running_lab import RunningLab
from tests.support.user import EMU, SECONDS, User, wait
from topologies.text import ibnetdiscover

pytestmark = pytest.mark.timing

TREE = """
name: managed
fabric: ib
slowdown: 3000
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {routing: {convergence: 30us}}
hosts: {nic: {timeout: 4}}
traffic: [{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 4MB}]
"""
FAULTS = """
faults:
  - {at: 100us, for: 150us, link-down: {cable: leaf1:spine1}}
  - {at: 380us, switch-down: {switch: spine2}}
"""
CABLES = 8
OPENSM, MASTER, STANDBY = "/usr/sbin/opensm", "15", "14"
IBSIM = ("/usr/bin/ibsim", "fabric.net")


def record(user: User, folder: Path, clock: str) -> Recording:
    file = folder / "managed.emu.yml"
    file.write_text(TREE + FAULTS)
    out = folder / clock
    ended = user.run_emu("run", file, "--clock", clock, "--out", out)
    assert ended.code in (0, 5), ended.err
    return load_recording(out)


def test_failed_cables_and_switches_are_routed_around(myself: User, tmp_path: Path) -> None:
    """Three changes give three sweeps on both clocks.

    If sweeps end within `convergence`, both clocks lose the same packets, apart from late
    ones and one at each edge.
    """
    virtual, real = record(myself, tmp_path, "virtual"), record(myself, tmp_path, "real")
    changes = [100_000, 250_000, 380_000]
    assert [(s.at_ns, s.in_force_ns) for s in virtual.sweeps] == [(t, t + 30_000) for t in changes]
    assert [sweep.at_ns for sweep in real.sweeps] == changes
    assert all(sweep.in_force_ns >= sweep.at_ns + 30_000 for sweep in real.sweeps)
    assert all(flow.completed for flow in real.flows)
    if real.fidelity.verdict != "ok":
        pytest.skip("the machine did not keep up, so that its numbers say nothing")
    if [sweep.in_force_ns for sweep in real.sweeps] == [t + 30_000 for t in changes]:
        for expected, got in zip(virtual.faults, real.faults, strict=True):
            edges = 2 + late_packets(real)
            assert got.packets_dropped == pytest.approx(expected.packets_dropped, abs=edges)


@pytest.fixture
def lab(myself: User, tmp_path: Path) -> RunningLab:
    spec = tmp_path / "managed.emu.yml"
    spec.write_text(TREE)
    return RunningLab(myself, *EMU, "run", "--clock", "real", str(spec))


def test_forwarding_continues_without_opensm(lab: RunningLab) -> None:
    """A subnet manager is no part of the data plane. The report mentions its end."""
    lab.kill((OPENSM, MASTER))
    code, out, _ = wait(lab.owner)
    lab.inside.wait_for_end()
    assert lab.inside.left() == []
    assert code in (0, 5)
    assert "OpenSM on h1 died; routes stay as they are from now on" in out
    assert "Finished: 2 flows" in out


def test_a_lab_ends_with_ibsim(lab: RunningLab) -> None:
    """OpenSM learns the state of links from ibsim."""
    lab.kill(IBSIM)
    code, out, err = lab.end()
    assert (code, out, err.splitlines()[-1]) == (4, "", "ibsim died (signal 9)")


def test_a_standby_takes_over_under_load(myself: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cable fails under one master, recovers under the next, and fails
    again without any master."""
    user = at_home(myself)
    monkeypatch.setenv("XDG_RUNTIME_DIR", user.environment["XDG_RUNTIME_DIR"])
    standby = TREE + "subnet: {managers: [h1, h4]}\n"
    with (
        lab_up(
            user, standby, *("--set", "traffic.pairs.size=20MB", "--set", "slowdown=10000")
        ) as lab,
        LabClient(None) as standing,
    ):
        standing.ask(StartTraffic())
        standing.ask(PULLED)
        eventually(standing, lambda status: len(status.sweeps) == 1)
        found = standing.ask(RunTool("h2", ("ibnetdiscover",)))[0].text
        assert len(re.findall(r"^\[\d+\]", found, re.MULTILINE)) == 2 * (CABLES - 1)
        os.kill(lab.process(OPENSM, MASTER), signal.SIGKILL)
        standing.ask(ClearFault("pulled"))
        eventually(standing, lambda status: len(status.sweeps) > 1)
        status = eventually(standing, lambda status: bool(status.notes))
        assert status.notes == ("OpenSM on h1 died; h4 takes over",)
        os.kill(lab.process(OPENSM, STANDBY), signal.SIGKILL)
        status = eventually(standing, lambda status: len(status.notes) == 2)
        standing.ask(PULLED)
        assert standing.status().traffic.state in ("running", "over")
        assert standing.status().sweeps == status.sweeps


def test_operators_tools_run_on_any_node(myself: User) -> None:
    """`emu exec` runs them like any program, with their own output and exit codes."""
    user = at_home(myself)
    with lab_up(user, TREE):
        found = user.run_emu("exec", "leaf1", "--", "ibnetdiscover")
        assert (found.code, found.err) == (0, "")
        assert len(ibnetdiscover.read(found.out, "ibnetdiscover").links) == CABLES
        assert user.run_emu("exec", "h2", "smpquery", "nodeinfo", "99").code != 0
        nowhere = user.run_emu("exec", "h9", "ibnetdiscover")
        assert nowhere.code == 2
        assert nowhere.err.startswith("there is no host or switch 'h9'")


RING = """
name: ring
fabric: ib
slowdown: 3000
topology: {kind: ring, switches: 5, hosts_per_switch: 1}
switches: {credits: {vls: 2}}
subnet: {engine: lash, vl_arbitration: {high: {}, low: {0: 64, 1: 64}}}
"""


def test_nics_borrowed_after_a_sweep_use_its_levels(
    myself: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lash needs two service levels in a ring, and one in the line that is left without a cable."""
    user = at_home(myself)
    monkeypatch.setenv("XDG_RUNTIME_DIR", user.environment["XDG_RUNTIME_DIR"])
    with lab_up(user, RING), LabClient(None) as standing:
        cut = SetFault("cut", {"link-down": {"cable": "ring1:ring2"}})
        before = _levels_of_paths(standing)
        standing.ask(cut)
        eventually(standing, lambda status: _levels_of_paths(standing) == {0})
        kept = "queue pairs that are connected keep theirs"
        eventually(standing, lambda status: kept in str(status.notes))
        assert before == {0, 1}
        assert _levels_of_a_nic(standing) == {0}
        assert kept in str(standing.status().notes)  # all other NICs keep the levels of the ring


def _levels_of_paths(standing: LabClient) -> set[int]:
    return _levels(standing.ask(GetPathLevels())[0].levels)


def _levels_of_a_nic(standing: LabClient) -> set[int]:
    nic, (file,) = standing.ask(BorrowNic("h1"))
    os.close(file)
    assert nic.subnet is not None
    return _levels(nic.subnet.levels)


def _levels(levels: PathSLs) -> set[int]:
    return {level for own in levels.values() for level in own.values()}


def test_an_isolated_master_returns_when_reconnected(
    myself: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other hosts' traffic continues, and so does the routing of the rest of the fabric."""
    user = at_home(myself)
    monkeypatch.setenv("XDG_RUNTIME_DIR", user.environment["XDG_RUNTIME_DIR"])
    spec = TREE.replace("h1-h2, to: h3-h4", "h2, to: h3") + "subnet: {managers: [h1, h4]}\n"
    settings = ("--set", "traffic.pairs.size=20MB", "--set", "slowdown=10000")
    with lab_up(user, spec, *settings), LabClient(None) as standing:
        standing.ask(StartTraffic())
        standing.ask(CUT)
        eventually(standing, lambda status: len(status.sweeps) == 1)
        standing.ask(PULLED)
        eventually(standing, lambda status: len(status.sweeps) == 2)
        eventually(standing, lambda _: "priority 14 state 3" in manager_of(standing, "h2"))
        standing.ask(ClearFault("cut"))
        eventually(standing, lambda _: "priority 15 state 3" in manager_of(standing, "h2"))
        status = eventually(standing, lambda status: len(status.sweeps) >= 3)
        assert status.notes == (
            "OpenSM on h1 is cut off; h4 takes over",
            "OpenSM on h1 is back; h4 stands by",
        )
        assert status.traffic.state in ("running", "over")


def manager_of(standing: LabClient, host: str) -> str:
    """The answer of the subnet manager to `sminfo` on a host."""
    return standing.ask(RunTool(host, ("sminfo",)))[0].text


CUT = SetFault("cut", {"name": "cut", "link-down": {"cable": "leaf1:h1"}})
PULLED = SetFault("pulled", {"name": "pulled", "link-down": {"cable": "leaf1:spine1"}})


def eventually(standing: LabClient, holds: Callable[[Status], bool]) -> Status:
    """The lab's status as soon as it meets the condition."""
    end = time.monotonic() + SECONDS
    while not holds(status := standing.status()):
        assert time.monotonic() < end, (status.notes, status.sweeps, status.traffic)
    return status
