"""Sweeps after links are lost: the real OpenSM's tables, with unchanged LIDs."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from emu.daemon.messages import BorrowedNic
from emu.errors import FabricError
from emu.lab.ipc.codec import from_line, to_line
from emu.subnet.diagnostics import diagnose
from emu.subnet.manager import ManagedFabric
from emu.subnet.policy import Policy
from emu.subnet.subnet import Resweep, Subnet
from tests.support.lab_fabrics import clos
from tests.support.waiting import eventually
from topologies.graph import Cable, Topology


def cable(topology: Topology, name: str) -> Cable:
    return topology.cable[topology.port_named[name]]


@pytest.fixture(scope="module")
def fabric() -> Topology:
    return clos(2)


@pytest.fixture(scope="module")
def subnet(fabric: Topology, tmp_path_factory: pytest.TempPathFactory) -> Subnet:
    """Resweeps after the loss of an uplink, of a host beside it, after their return, and after the
    loss of the manager's own cable."""
    uplink, host, own = (cable(fabric, name) for name in ("leaf1:spine1", "leaf2:h4", "leaf1:h1"))
    downs = (frozenset({uplink}), frozenset({uplink, host}), frozenset[Cable](), frozenset({own}))
    workdir = tmp_path_factory.mktemp("subnet")
    with ManagedFabric(fabric, Policy(), workdir) as managed:
        whole = managed.subnet()
        later = tuple(
            Resweep(moment, managed.without(down), {}) for moment, down in enumerate(downs)
        )
    return replace(whole, later=later)


def after(subnet: Subnet, moment: int) -> Subnet:
    """The subnet after the resweep with this number."""
    return Subnet(subnet.lids, subnet.later[moment].lfts, subnet.engine, 0.0)


def test_links_may_change_during_a_sweep(fabric: Topology, tmp_path: Path) -> None:
    """OpenSM then fails to sweep, or forgets the trap, and is asked again."""
    spine = frozenset(cable(fabric, f"spine1:{leaf}") for leaf in ("leaf1", "leaf2"))
    with ManagedFabric(fabric, Policy(), tmp_path) as managed:
        whole = managed.subnet().lfts
        for half_ms in range(10):
            for down in (spine, frozenset[Cable]()):
                managed.opensm.sweep_now()
                time.sleep(half_ms / 2000)  # into another part of the sweep
                tables = managed.without(down)
                assert (tables == whole) == (not down)


def test_tables_that_opensm_writes_are_not_read_yet(fabric: Topology, tmp_path: Path) -> None:
    with ManagedFabric(fabric, Policy(), tmp_path) as managed:
        whole = managed.subnet().lfts
        os.kill(managed.opensm.pid, signal.SIGSTOP)
        with (tmp_path / "opensm.log").open("a") as log:
            log.write("updn tables configured on all switches\n")
        (tmp_path / "opensm-lfts.dump").write_text("")
        with pytest.raises(FabricError, match=r"OpenSM did not write opensm-lfts\.dump within 2 s"):
            managed.tables()
        os.kill(managed.opensm.pid, signal.SIGCONT)
        managed.opensm.sweep_and_wait()
        assert managed.tables() == whole


def test_paths_avoid_a_lost_cable(fabric: Topology, subnet: Subnet) -> None:
    """Every host reaches every other over the other spine."""
    lost = cable(fabric, "leaf1:spine1")
    for src in fabric.host:
        for dst in fabric.host:
            path = after(subnet, 0).path(fabric, src, dst)
            assert not {lost.a, lost.b} & set(path)


def test_lost_host_is_in_no_table(fabric: Topology, subnet: Subnet) -> None:
    with pytest.raises(FabricError, match="no route from leaf1 to h4"):
        after(subnet, 1).path(fabric, "h1", "h4")
    assert after(subnet, 1).path(fabric, "h1", "h3")


def test_returned_cable_is_used_again(subnet: Subnet) -> None:
    assert after(subnet, 2).lfts == subnet.lfts


def test_isolated_manager_changes_nothing(subnet: Subnet) -> None:
    assert after(subnet, 3).lfts == subnet.lfts


def test_subnet_with_resweeps_survives_json(subnet: Subnet) -> None:
    assert from_line(to_line(BorrowedNic(1, subnet))) == BorrowedNic(1, subnet)


def test_separated_managers_elect_one_master_again(fabric: Topology, tmp_path: Path) -> None:
    """By SMInfo: the standby takes over from an unreachable master, and hands over to it after its
    return."""
    own = cable(fabric, "leaf1:h1")
    with ManagedFabric(fabric, Policy(), tmp_path, hosts=["h1", "h4"]) as managed:
        whole = managed.subnet()
        managed.without(frozenset({own}))
        assert managed.master == "h4"
        assert _asked_by(managed, "h2") == ("14", "MASTER")
        eventually(lambda: _asked_by(managed, "h1") == ("15", "MASTER"))  # its only manager
        again = managed.without(frozenset())
        assert managed.master == "h1"
        assert _asked_by(managed, "h2") == ("15", "MASTER")
        assert "Entering STANDBY" in managed.managers["h4"].dump("opensm.log").splitlines()[-1]
        assert again == whole.lfts


def test_manager_that_has_just_begun_is_asked_to_sweep(fabric: Topology, tmp_path: Path) -> None:
    """The signal that asks for a sweep would end a process that does not handle it yet."""
    with ManagedFabric(fabric, Policy(), tmp_path, hosts=["h1", "h4"]) as managed:
        managed.managers["h4"].sweep_now()
        eventually(lambda: "Entering STANDBY" in managed.managers["h4"].dump("opensm.log"))


def test_silent_manager_is_queried_four_times(fabric: Topology, tmp_path: Path) -> None:
    """With OpenSM's own time-out and retries; ibsim needs the preload library for time-outs."""
    with ManagedFabric(fabric, Policy(), tmp_path, hosts=["h1", "h4"]) as managed:
        master, standby = managed.managers.values()
        eventually(lambda: master.sweeps == 2)  # the second sweep has found the standby
        eventually(lambda: "Entering STANDBY" in standby.dump("opensm.log"))
        master.has_swept()
        os.kill(standby.pid, signal.SIGSTOP)
        master.sweep_now()
        master.wait_for_next_sweep()
        assert "(IB_TIMEOUT): SubnGet(SMInfo)" in master.dump("opensm.log")
        os.kill(standby.pid, signal.SIGCONT)
        late = re.compile(r"Failed to obtain request .* method=0x81 attr=0x20")
        eventually(lambda: len(late.findall(master.dump("opensm.log"))) == 4)


def _asked_by(managed: ManagedFabric, host: str) -> tuple[str, str]:
    """Priority and state of the manager that manages this host's port."""
    said = diagnose(managed.simulator, host, ["sminfo"]).text
    found = re.search(r"priority (\d+) state \d SMINFO_(\w+)", said)
    assert found, said
    return found[1], found[2]


def test_the_time_of_a_sweep_ends_with_the_tables_without_the_cable(
    fabric: Topology, tmp_path: Path
) -> None:
    """Timed by OpenSM's own log: after the pull, and before the wait for the next sweep is over."""
    uplink = frozenset({cable(fabric, "leaf1:spine1")})
    with ManagedFabric(fabric, Policy(), tmp_path) as managed:
        managed.subnet()
        before = managed.tables()
        began = time.monotonic()
        taken = managed.seconds_to_tables(uplink)
        assert 0 < taken < time.monotonic() - began
        pulled = managed.tables()
        assert pulled != before
        assert managed.seconds_to_tables(frozenset()) > 0
        assert managed.without(uplink) == pulled
