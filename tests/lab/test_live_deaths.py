"""A lab ends completely and names the reason when any of its processes is killed.

The labs are real ones, in the middle of a run that would last for seconds.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.running_lab import Command, RunningLab
from tests.support.user import EMU, Ended, User

NAME = "long"
SPEC = f"""
name: {NAME}
slowdown: 5000
topology: {{kind: dumbbell, hosts_per_side: 1}}
switches: {{pfc: {{}}, ecn: {{}}}}
traffic: [{{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 10MB}}]
capture: [all]
"""
"""The traffic takes four seconds of real time, nearly all of it after the first frame."""

VICTIMS: dict[str, Command] = {
    "forks": (sys.executable, "emu-forks"),
    "shim": (sys.executable, "emu-shim"),
    "NICs": (sys.executable, "emu-nics"),
    "ovs-vswitchd": ("ovs-vswitchd", "--detach"),
    "ovsdb-server": ("ovsdb-server", "--detach"),
    "first": (sys.executable, "emu-lab"),
    "unshare": ("unshare", "emu.lab.init"),
    "emu": (sys.executable, "emu.cli.main"),
}
"""Every process of a run."""


_IS_PROGRESS = f"{NAME}  "


@pytest.fixture
def lab(user: User, tmp_path: Path) -> RunningLab:
    spec = tmp_path / f"{NAME}.emu.yml"
    spec.write_text(SPEC)
    return RunningLab(user, *EMU, "run", "--clock", "real", str(spec))


def _end(lab: RunningLab) -> Ended:
    """How the lab ended, without its output from before the end."""
    code, out, err = lab.end()
    told = [line for line in err.splitlines() if line and not line.startswith(_IS_PROGRESS)]
    return Ended(code, out, "\n".join(told))


def test_victims_are_all_processes_of_a_lab(lab: RunningLab) -> None:
    """The other tests kill each of these processes."""
    known = {lab.inside.process(*victim) for victim in VICTIMS.values()}
    assert set(lab.inside.commands) == known
    lab.kill(VICTIMS["emu"])
    lab.end()


@pytest.mark.parametrize(
    ("victim", "says"),
    [
        ("forks", "the fork server died (signal 9)"),
        ("shim", "the shim died (signal 9)"),
        ("NICs", "the NIC process died (signal 9)"),
        ("ovs-vswitchd", "ovs-vswitchd died (signal 9)"),
        ("ovsdb-server", "ovsdb-server died (signal 9)"),
        ("first", "the lab's first process died"),
        ("unshare", "the lab's first process died"),
    ],
)
def test_a_lab_ends_with_any_of_its_processes(lab: RunningLab, victim: str, says: str) -> None:
    """The exit code is 4, with one line that names the process."""
    lab.kill(VICTIMS[victim])
    assert _end(lab) == Ended(4, "", says)


def test_a_lab_ends_with_the_emu_that_owns_it(lab: RunningLab) -> None:
    """No process is left that could report the end."""
    lab.kill(VICTIMS["emu"])
    assert _end(lab) == Ended(-signal.SIGKILL, "", "")


def test_ctrl_c_ends_a_lab(lab: RunningLab) -> None:
    """A terminal sends the signal to the whole process group."""
    os.killpg(lab.owner.pid, signal.SIGINT)
    assert _end(lab) == Ended(130, "", "interrupted")


def test_sigint_to_emu_alone_ends_a_lab(lab: RunningLab) -> None:
    """A script or a supervisor sends the signal in this way."""
    lab.owner.send_signal(signal.SIGINT)
    assert _end(lab) == Ended(130, "", "interrupted")
