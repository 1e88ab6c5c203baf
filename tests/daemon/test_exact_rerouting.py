"""Links that users take down in a lab on the exact clock: switches route anew at the same emulated
times as in a run whose spec has the faults, and the results are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.background_lab import at_home, lab_up, status_of
from tests.support.exact_lab import (
    EXACT,
    emu,
    finish_traffic,
    flow_times,
    on_virtual_clock,
    time_of,
)
from tests.support.user import User
from tests.support.waiting import eventually

CLOS = """
name: still
fabric: roce
seed: 5
topology:
  kind: leaf-spine
  spines: 3
  leaves: 2
  hosts_per_leaf: 3
  links: {host: {rate: 100Gbit, delay: 300ns}, fabric: {rate: 100Gbit, delay: 500ns}}
switches: {pfc: {}, routing: {convergence: 7us}}
hosts: {nic: {timeout: 6}}
traffic: [{name: across, pattern: permutation, among: all, op: write, size: 400KB}]
"""
IN_SPEC = """
faults:
  - {at: 9us, for: 16us, link-down: {cable: "leaf1:spine1"}}
  - {at: 12us, switch-down: {switch: spine2}}
"""
"""What the tests do in a lab."""
US = 1_000_000
"""Picoseconds."""


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_links_that_a_user_loses_are_as_in_the_spec(me: User, tmp_path: Path, fabric: str) -> None:
    """Open vSwitch follows, or OpenSM is asked."""
    spec = CLOS.replace("roce", fabric)
    with lab_up(me, spec, *EXACT):
        emu(me, "pause")
        emu(me, "traffic", "start")
        emu(me, "step", "9us")
        emu(me, "fault", "set", "{name: cut, link-down: {cable: leaf1:spine1}}")
        emu(me, "step", "3us")
        emu(me, "fault", "set", "switch-down: {switch: spine2}")
        emu(me, "step", "13us")
        emu(me, "fault", "clear", "cut")
        emu(me, "continue")
        flows = flow_times(finish_traffic(me))
        changes = [(one["at_ns"], one["in_force_ns"]) for one in status_of(me)[0]["links"]]
    assert changes == [(9000, 16000), (12000, 19000), (25000, 32000)]
    assert flows == on_virtual_clock(spec + IN_SPEC, tmp_path)
    assert flows != on_virtual_clock(spec, tmp_path)


def test_without_traffic_time_runs_until_routes_have_changed(me: User, tmp_path: Path) -> None:
    """So a program need not wait for them. A host's link that was lost leaves nothing behind, in
    either direction: later traffic has the times of a lab without faults."""
    ping = ("exec", "h1", "--", "ping", "-c", "1", "-W", "2", "h4-eth0")
    with lab_up(me, CLOS, *EXACT, "--set", "plane=shim"):
        for number, cable in enumerate(("leaf1:spine1", "leaf1:h1"), 1):
            emu(me, "fault", "set", f"{{name: cut, link-down: {{cable: {cable}}}}}")
            eventually(lambda: time_of(me)[0] == "stands")
            assert time_of(me)[1] >= 7 * US
            if number == 1:
                assert me.run_emu(*ping).code == 0
            emu(me, "fault", "clear", "cut")
            eventually(lambda: time_of(me)[0] == "stands")
            assert len(status_of(me)[0]["links"]) == 2 * number
        emu(me, "traffic", "start")
        assert flow_times(finish_traffic(me)) == on_virtual_clock(CLOS, tmp_path)
