"""A run on the exact clock ends, and names the process, when any of them is killed or stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from emu.errors import FabricError
from emu.lab.ipc.jobs import RunExact
from emu.lab.namespace import run_in_lab
from tests.lab.test_live_deaths import VICTIMS
from tests.support.impatient_inside import STOPS
from tests.support.running_lab import RunningLab
from tests.support.same_runs import spec_of
from tests.support.user import EMU, Ended, User

NAME = "long"
SPEC = f"""
name: {NAME}
fabric: roce
topology: {{kind: dumbbell, hosts_per_side: 1}}
switches: {{pfc: {{}}, ecn: {{}}}}
hosts: {{nic: {{mtu: 256}}}}
traffic: [{{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 1GB}}]
capture: [all]
"""
"""The traffic takes minutes of the machine's time, much longer than a stopped process is looked
for."""

NAMES = {
    "shim": "the shim",
    "NICs": "the NIC process",
    "ovs-vswitchd": "ovs-vswitchd",
    "ovsdb-server": "ovsdb-server",
    "first": "the lab's first process",
    "unshare": "the lab's first process",
}
STOPPED = ("shim", "NICs", "ovs-vswitchd", "first")


@pytest.fixture
def lab(ordinary: User, tmp_path: Path) -> RunningLab:
    spec = tmp_path / f"{NAME}.emu.yml"
    spec.write_text(SPEC)
    return RunningLab(ordinary, *EMU, "run", str(spec), "--clock", "exact", "--quiet")


@pytest.mark.parametrize("victim", NAMES)
def test_a_killed_process_is_named(lab: RunningLab, victim: str) -> None:
    lab.kill(VICTIMS[victim])
    how = "died" if NAMES[victim].endswith("first process") else "died (signal 9)"
    assert lab.end() == Ended(4, "", f"{NAMES[victim]} {how}\n")


@pytest.mark.parametrize("victim", STOPPED)
def test_a_stopped_process_is_named(lab: RunningLab, victim: str) -> None:
    lab.kill(VICTIMS[victim], signal.SIGSTOP)
    says = f"{NAMES[victim]} was stopped by a signal and does not go on\n"
    assert lab.end() == Ended(4, "", says)


def test_the_lab_ends_with_emu(lab: RunningLab) -> None:
    lab.kill(VICTIMS["emu"])
    assert lab.end() == Ended(-signal.SIGKILL, "", "")


def test_ctrl_c_ends_the_lab(lab: RunningLab) -> None:
    os.killpg(lab.owner.pid, signal.SIGINT)
    code, _, err = lab.end()
    assert (code, err.strip()) == (130, "interrupted")


@pytest.mark.parametrize(("stopped", "named"), [("shim", "switches"), ("nics", "NICs")])
def test_each_process_notices_that_the_other_stands_still(
    lab_machine: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stopped: str,
    named: str,
) -> None:
    """Without the first process's help."""
    monkeypatch.setenv(STOPS, stopped)
    job = RunExact(spec_of(SPEC).to_json(), str(tmp_path), None)
    says = f"the process of the {named} has made no progress for 1 s"
    with pytest.raises(FabricError, match=says):
        run_in_lab(job, on_progress=lambda _: None, module="tests.support.impatient_inside")
