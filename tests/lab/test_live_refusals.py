"""Runs that `emu run` refuses or cannot start: the error names reason
and remedy, nothing is left."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from emu.errors import HostError
from emu.lab.ipc.jobs import RunTraffic
from emu.lab.namespace import run_in_lab
from emu.privilege import remedy_for_me
from tests.support.path import path_of_programs
from tests.support.traces import Outside
from tests.support.user import EMU, Ended, User, wait

GOOD = """
name: good
slowdown: 5000
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 4KB}]
"""
BROKEN = """
name: broken
slowdown: fast
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h9, op: write, size: 4KB}]
captures: [all]
"""
"""The mistakes are a word in place of a number, an unknown host and an unknown key."""


def _spec(folder: Path, text: str, *more: str) -> Path:
    path = folder / "test.emu.yml"
    path.write_text("\n".join((text, *more)))
    return path


def _noting_start(folder: Path) -> str:
    """A PATH on which `unshare` leaves a file in the home folder."""
    return path_of_programs(folder, unshare=f'touch ~/started\nexec {shutil.which("unshare")} "$@"')


def test_a_good_spec_starts_a_lab(myself: User, tmp_path: Path) -> None:
    """The next test relies on this sign of a start."""
    somebody = myself.with_path(_noting_start(tmp_path))
    ended = somebody.run_emu("run", _spec(tmp_path, GOOD))
    assert ended.code == 0, ended.err
    assert (somebody.home / "started").exists()


@pytest.mark.parametrize("verb", [("run",), ("run", "--json"), ("shell",)])
def test_a_broken_spec_starts_no_lab(myself: User, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """Exit code 2 comes with all mistakes at once, each with its place."""
    somebody = myself.with_path(_noting_start(tmp_path))
    spec = _spec(tmp_path, BROKEN)
    ended = somebody.run_emu(*verb, spec)
    assert (ended.code, ended.out) == (2, "")
    place = re.compile(re.escape(f"{spec}:") + r"(\d+):\d+: ")
    found = [place.match(line) for line in ended.err.splitlines()]
    assert [match and match[1] for match in found] == ["3", "5", "6"]
    assert not (somebody.home / "started").exists()


@pytest.mark.parametrize(
    ("program", "package"),
    [
        ("setpriv", "util-linux"),
        ("unshare", "util-linux"),
        ("mount", "mount"),
        ("mnexec", "mininet"),
        ("bash", "bash"),
    ],
)
def test_programs_of_every_lab_are_checked_first(
    program: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lab without them would not start, or would hang."""
    monkeypatch.setenv("PATH", path_of_programs(tmp_path, without=program))
    with pytest.raises(HostError) as raised:
        run_in_lab(RunTraffic(GOOD, str(tmp_path), 1000), on_progress=print)
    assert str(raised.value) == _missing(program, package)


def test_a_missing_program_is_named_with_its_package(myself: User, tmp_path: Path) -> None:
    """The exit code is 3. The lab is half built by then, and nothing of it is left."""
    somebody = myself.with_path(path_of_programs(tmp_path, without="ovs-vsctl"))
    before = Outside.now(somebody)
    ended = somebody.run_emu("run", "--clock", "exact", _spec(tmp_path, GOOD))
    says = _missing("ovs-vsctl", "openvswitch-switch")
    instead = "or use --clock virtual, which needs no lab and gives the same results"
    assert ended == Ended(3, "", f"{says}; {instead}\n")
    assert Outside.now(somebody) == before


def test_an_ordinary_users_path_is_enough(user: User, tmp_path: Path) -> None:
    """Debian's PATH for users has no sbin folder, where Open vSwitch's daemons are."""
    ended = user.with_path("/usr/local/bin:/usr/bin:/bin").run_emu("run", _spec(tmp_path, GOOD))
    assert ended.code == 0, ended.err
    assert "exact clock" in ended.out


def _missing(program: str, package: str) -> str:
    return f"the program {program} is missing; {remedy_for_me(f'sudo apt-get install {package}')}"


@pytest.mark.parametrize("clock", ["virtual", "exact"])
def test_a_full_disk_is_named(myself: User, tmp_path: Path, clock: str) -> None:
    """The capture is larger than its file system."""
    spec, out = _spec(tmp_path, GOOD.replace("4KB", "200KB"), "capture: [left:h1]"), "/mnt/out"
    run = shlex.join((*EMU, "run", str(spec), "--clock", clock, "--out", out))
    private = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    ended = wait(myself.start(*private, f"mount -t tmpfs -o size=64k tmpfs /mnt && {run}"))
    assert (ended.code, ended.err.splitlines()[-1]) == (
        4,
        "/mnt/out: No space left on device; what was written there is not whole: make room, or "
        "choose another --out",
    )
