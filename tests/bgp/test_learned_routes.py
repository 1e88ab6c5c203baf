"""Recorded routes become changes of a switch's routes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from emu.errors import UsageError
from emu.spec.model import spec_from_text
from emu.spec.outages import Rerouting
from emu.spec.rerouting import reroutings
from emu.spec.route_recording import (
    Fib,
    LinkEvent,
    RouteChange,
    RouteRecording,
    write_recording,
)
from emu.spec.scenario import Spec

SPEC = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 1}
switches: {routing: {control_plane: bgp, convergence: 100us}}
faults: [{link-down: {cable: "leaf1:spine1"}, at: 1ms}]
traffic: [{name: f, pattern: pair, from: h1, to: h2, size: 1MB}]
"""
QUIET = "".join(line for line in SPEC.splitlines(keepends=True) if "faults" not in line)
"""Without faults."""
H1, H2 = "10.0.0.1/32", "10.0.0.2/32"
CABLE = 1
"""leaf1's to spine1, whose ports are eth2 and eth1."""
FIRST: dict[str, Fib] = {
    "leaf1": {H2: (2, 3)},
    "leaf2": {H1: (2, 3)},
    "spine1": {H1: (1,), H2: (2,)},
    "spine2": {H1: (1,), H2: (2,)},
}
"""Of FRR in a settled fabric."""
MS = 1_000_000


@dataclass
class Recorded:
    """A recording under construction."""

    folder: Path
    first: dict[str, Fib] = field(default_factory=lambda: dict(FIRST))
    changes: list[RouteChange] = field(default_factory=list)
    events: tuple[LinkEvent, ...] = (LinkEvent(1 * MS, (CABLE,)),)
    holds_until_ns: int | None = None

    def spec(self, text: str = SPEC, **changes: Any) -> Spec:
        confs, until = dict.fromkeys(self.first, ""), self.holds_until_ns
        recording = RouteRecording(
            *("FRR", confs, self.events, self.first, tuple(self.changes), (), 1.0, until, (), 0)
        )
        path = self.folder / "routes.json"
        write_recording(recording, path)
        return spec_from_text(text.encode(), source="spec").model_copy(
            update={"recorded_routes": str(path), **changes}
        )

    def found(self, text: str = SPEC) -> list[tuple[int, str, dict[str, list[int]]]]:
        """The changes of routes: time in ns, switch, and the port numbers for each host."""
        return [_written(change) for change in reroutings(self.spec(text))]


def _written(change: Rerouting) -> tuple[int, str, dict[str, list[int]]]:
    hops = {host: [port.number for port in ports] for host, ports in change.changes.items()}
    return change.at_ps // 1000, change.switch, hops


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def test_settled_fabric_changes_nothing(recorded: Recorded) -> None:
    recorded.events = ()
    assert recorded.found(QUIET) == []


def test_local_repair_takes_a_dead_port_out_at_once(recorded: Recorded) -> None:
    recorded.changes = [
        RouteChange(3 * MS, "leaf1", {H2: (3,)}, by_kernel=True),
        RouteChange(3 * MS, "spine1", {H1: ()}, by_kernel=True),
        RouteChange(76 * MS, "leaf1", {H2: (3,)}, by_kernel=False),
        RouteChange(76 * MS, "spine1", {H1: ()}, by_kernel=False),
        RouteChange(130 * MS, "leaf2", {H1: (3,)}, by_kernel=False),
    ]
    assert recorded.found() == [
        (1_100_000, "spine1", {"h1": []}),
        (1_100_000, "leaf1", {"h2": [3]}),
        (130 * MS, "leaf2", {"h1": [3]}),
    ]


def test_without_local_repair_a_switch_waits_for_bgp(recorded: Recorded) -> None:
    recorded.changes = [
        RouteChange(3 * MS, "leaf1", {H2: (3,)}, by_kernel=True),
        RouteChange(76 * MS, "leaf1", {H2: (3,)}, by_kernel=False),
    ]
    text = SPEC.replace("convergence: 100us", "convergence: 100us, bgp: {local_repair: no}")
    assert recorded.found(text) == [(76 * MS, "leaf1", {"h2": [3]})]


def test_routes_that_differ_at_the_start_do_so_from_the_start(recorded: Recorded) -> None:
    recorded.first["leaf1"] = {H2: (2,)}
    recorded.events = ()
    assert recorded.found(QUIET) == [(0, "leaf1", {"h2": [2]})]


def test_change_before_the_first_event_has_no_cause(recorded: Recorded) -> None:
    recorded.changes = [RouteChange(0, "leaf1", {H2: (3,)}, by_kernel=False)]
    first = reroutings(recorded.spec())[0]
    assert (first.at_ps, first.cause_ps) == (0, 0)


def test_longest_prefix_wins(recorded: Recorded) -> None:
    recorded.first["leaf1"] = {"0.0.0.0/0": (2,), "10.0.0.0/8": (3,), H2: (2, 3)}
    recorded.changes = [
        RouteChange(2 * MS, "leaf1", {H2: ()}, by_kernel=False),
        RouteChange(3 * MS, "leaf1", {"10.0.0.0/8": ()}, by_kernel=False),
        RouteChange(4 * MS, "leaf1", {"0.0.0.0/0": ()}, by_kernel=False),
    ]
    assert recorded.found() == [
        (2 * MS, "leaf1", {"h2": [3]}),
        (3 * MS, "leaf1", {"h2": [2]}),
        (4 * MS, "leaf1", {"h2": []}),
    ]


def test_port_that_is_there_twice_gets_two_shares(recorded: Recorded) -> None:
    recorded.first["leaf1"] = {H2: (2, 2, 3)}
    recorded.events = ()
    assert recorded.found(QUIET) == [(0, "leaf1", {"h2": [2, 2, 3]})]


def test_switch_loses_its_own_host_by_itself(recorded: Recorded) -> None:
    text = SPEC.replace("leaf1:spine1", "leaf1:h1")
    recorded.events = (LinkEvent(1 * MS, (0,)),)
    assert recorded.found(text) == [(1_100_000, "leaf1", {"h1": []})]


def test_recording_of_another_run_is_refused(recorded: Recorded) -> None:
    with pytest.raises(UsageError, match="was recorded for links that fail at other times"):
        recorded.found(SPEC.replace("at: 1ms", "at: 2ms"))
    with pytest.raises(UsageError, match="was recorded for another fabric"):
        recorded.found(SPEC.replace("spines: 2", "spines: 3"))
    recorded.first["leaf1"] = {H2: (2, 7)}
    with pytest.raises(UsageError, match="was recorded for another fabric"):
        recorded.found()


def test_recording_that_ended_early_is_for_short_runs(recorded: Recorded) -> None:
    recorded.holds_until_ns = 100 * MS
    recorded.found()  # which ends at 100 ms
    with pytest.raises(UsageError, match="was recorded for a run of 100ms; leave it out"):
        recorded.found(SPEC + "time_limit: 101ms\n")


@pytest.mark.parametrize("prefix", ["banana", "10.0.0.999/32", "10.0.0.0/99", "::/0"])
def test_recording_with_a_wrong_prefix_is_refused(recorded: Recorded, prefix: str) -> None:
    recorded.first["leaf1"] = {prefix: (2,)}
    with pytest.raises(UsageError, match="is not a file of recorded routes"):
        recorded.found()


@pytest.mark.parametrize("times", [(3 * MS, 2 * MS), (-1, 5)])
def test_recording_with_wrong_times_is_refused(recorded: Recorded, times: tuple[int, int]) -> None:
    recorded.changes = [RouteChange(at_ns, "leaf1", {H2: (2,)}, by_kernel=False) for at_ns in times]
    with pytest.raises(UsageError, match="is not a file of recorded routes"):
        recorded.found()


def test_recording_of_a_switch_with_a_path_for_a_name_is_refused(recorded: Recorded) -> None:
    recorded.first["../../x"] = {}
    with pytest.raises(UsageError, match="was recorded for another fabric"):
        recorded.found()


def test_file_that_is_no_recording_is_refused(recorded: Recorded) -> None:
    spec = recorded.spec()
    Path(str(spec.recorded_routes)).write_text("[1, 2]")
    with pytest.raises(UsageError, match=r"routes\.json: is not a file of recorded routes"):
        reroutings(spec)
    Path(str(spec.recorded_routes)).unlink()
    with pytest.raises(UsageError, match="cannot be read as recorded routes: No such file"):
        reroutings(spec)
