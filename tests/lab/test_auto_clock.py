"""The clock that commands take when none is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.clocks import EXACT, REAL, VIRTUAL, Clock
from emu.report.store import load_recording
from emu.runtime.auto_clock import MOST_HOSTS, auto_clock
from tests.support.path import path_of_programs
from tests.support.same_runs import spec_of
from tests.support.user import User

PAIR = """
name: pair
about: {id: A1, title: one flow, expected: it ends, source: derived}
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 40KB}]
verify: [{completed: all}]
compare: {roce: {}, ib: {fabric: ib}}
"""
TCP = "traffic.0={name: flow, pattern: pair, from: h1, to: h2, size: 40KB, stack: tcp}"
MANY = f"topology={{kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: {MOST_HOSTS}}}"
LONG = ("traffic.0.size=2GB", "hosts.nic.mtu=256", "time_limit=1s")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "pair.emu.yml"
    path.write_text(PAIR)
    return path


@pytest.mark.parametrize(
    ("settings", "clock", "why"),
    [
        ((), EXACT, EXACT.how),
        (("fabric=ib",), EXACT, EXACT.how),
        ((TCP,), REAL, "stack: tcp is the TCP of this machine's kernel"),
        (("switches.ecn={marker: red}",), REAL, "marker: red has its queues in the kernel"),
        (("payload=elided",), VIRTUAL, "payload: elided leaves the bytes of messages out"),
        ((MANY,), VIRTUAL, "a lab of 256 hosts takes long to build"),
        (LONG, VIRTUAL, "a lab would take about"),
    ],
)
def test_the_spec_decides(
    lab_machine: None, settings: tuple[str, ...], clock: Clock, why: str
) -> None:
    choice = auto_clock([spec_of(PAIR, *settings)])
    assert (choice.clock, why in str(choice)) == (clock, True), str(choice)


def test_one_clock_for_all_variants(lab_machine: None) -> None:
    """A comparison of two clocks would compare the clocks."""
    assert auto_clock([spec_of(PAIR), spec_of(PAIR, TCP)]).clock is REAL


def test_the_first_line_names_the_clock(user: User, spec: Path) -> None:
    """Of an ordinary user, too."""
    for verb in ("run", "compare"):
        ended = user.run_emu(verb, spec)
        assert ended.code == 0, ended.err
        assert ended.err.startswith("exact clock: a lab of namespaces")
        assert "ovs plane, exact clock" in ended.out


@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        ({"without": "ovs-vsctl"}, "Open vSwitch: ovs-vsctl not installed"),
        ({"without": "mnexec"}, "mininet: mnexec not installed"),
        ({"unshare": "echo unshare failed: Operation not permitted >&2; exit 1"}, "not permitted"),
    ],
    ids=["no Open vSwitch", "no Mininet", "no namespaces"],
)
def test_without_labs_it_is_the_virtual_clock(
    myself: User, tmp_path: Path, spec: Path, lacks: dict[str, str], says: str
) -> None:
    """The first line says what the machine lacks, and the result is the same."""
    somebody = myself.with_path(path_of_programs(tmp_path, **lacks))
    results = {}
    for who, clock in ((myself, "exact"), (somebody, "virtual")):
        ended = who.run_emu("run", spec, "--out", tmp_path / clock)
        assert ended.code == 0, ended.err
        results[clock] = load_recording(tmp_path / clock)
        assert results[clock].clock == clock
    first, *_ = ended.err.splitlines()
    assert first.startswith("virtual clock: no lab can be built here: ")
    assert says in first
    assert results["exact"].flows == results["virtual"].flows
    assert results["exact"].ports == results["virtual"].ports


def test_threads_ask_for_the_virtual_clock(myself: User, spec: Path) -> None:
    ended = myself.run_emu("run", spec, "--threads", "2")
    assert (ended.code, "virtual clock: the one that runs on several threads" in ended.err) == (
        0,
        True,
    )


def test_results_run_on_it(myself: User, tmp_path: Path, spec: Path) -> None:
    """A spec that is for another clock runs on that one."""
    other = tmp_path / "other.emu.yml"
    other.write_text(
        PAIR.replace("id: A1", "id: A2, clocks: [virtual]").replace("name: pair", "name: other")
    )
    ended = myself.run_emu("results", tmp_path, "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "exact clock: a lab of namespaces, whose time waits for its frames (pair)" in ended.err
    assert "virtual clock: about.clocks has no exact (other)" in ended.err
    folders = {path.parent.relative_to(tmp_path / "out") for path in tmp_path.rglob("summary.json")}
    assert {str(folder) for folder in folders} == {
        *(f"pair/exact/{name}" for name in ("pair", "roce", "ib")),
        *(f"other/virtual/{name}" for name in ("other", "roce", "ib")),
    }
