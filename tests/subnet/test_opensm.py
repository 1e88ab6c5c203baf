"""The real OpenSM, with ibsim. These tests need both packages, but not root."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import pytest

from emu.errors import FabricError, HostError
from emu.subnet import opensm, programs
from emu.subnet.dumps import parse_guid2lid, parse_lfts
from emu.subnet.manager import sweep
from emu.subnet.policy import Policy
from topologies.graph import Builder, Topology, Wire
from topologies.guids import host_port_guid, switch_guid
from topologies.leaf_spine import leaf_spine


@pytest.fixture
def fabric() -> Topology:
    """The incast example's fabric."""
    return leaf_spine(
        spines=2,
        leaves=2,
        hosts_per_leaf=4,
        host_wire=Wire(100 * 10**9, 500_000),
        fabric_wire=Wire(100 * 10**9, 500_000),
    )


def ring(switches: int) -> Topology:
    """Switches in a ring, with one host each."""
    builder = Builder()
    names = [builder.add_switch(f"s{n + 1}", "ring") for n in range(switches)]
    for name in names:
        builder.add_cable(name, builder.add_host(), Wire(10**11, 0))
    for name, following in zip(names, names[1:] + names[:1], strict=True):
        builder.add_cable(name, following, Wire(10**11, 0))
    return builder.topology()


def test_every_host_reaches_every_host_by_a_shortest_path(fabric: Topology, tmp_path: Path) -> None:
    """Two ports within a rack (the host's, the leaf's), four between racks."""
    subnet = sweep(fabric, workdir=tmp_path)
    assert subnet.engine == "updn"
    for src, dst in permutations(fabric.host, 2):
        path = subnet.path(fabric, src, dst)
        leaves = {fabric.peer[fabric.ports[host][0]].node for host in (src, dst)}
        assert len(path) == 2 * len(leaves)


def test_routes_between_racks_use_every_spine(fabric: Topology, tmp_path: Path) -> None:
    """The four hosts of the other rack use the two spines two by two."""
    subnet = sweep(fabric, workdir=tmp_path)
    spines = [subnet.path(fabric, "h1", host)[2].node for host in ("h5", "h6", "h7", "h8")]
    assert sorted(spines) == ["spine1", "spine1", "spine2", "spine2"]


def test_subnet_has_what_opensm_dumped(fabric: Topology, tmp_path: Path) -> None:
    """Every row of every table, and every LID, under the right name."""
    subnet = sweep(fabric, workdir=tmp_path)
    guids = {switch_guid(switch): switch.name for switch in fabric.switches}
    lfts = parse_lfts((tmp_path / "opensm-lfts.dump").read_text())
    assert subnet.lfts == {guids[guid]: lft for guid, lft in lfts.items()}
    guids |= {host_port_guid(host): host.name for host in fabric.hosts}
    lids = parse_guid2lid((tmp_path / "guid2lid").read_text())
    assert subnet.lids == {guids[guid]: lid for guid, lid in lids.items()}


def test_same_fabric_same_tables(fabric: Topology, tmp_path: Path) -> None:
    """Two parallel sweeps do not disturb each other, and their tables agree."""
    with ThreadPoolExecutor() as pool:
        one, other = pool.map(lambda name: sweep(fabric, workdir=tmp_path / name), ("one", "other"))
    assert (one.lids, one.lfts) == (other.lids, other.lfts)


def test_engine_that_cannot_route_a_fabric_falls_back(tmp_path: Path) -> None:
    """A ring has no roots, so OpenSM routes by minhop instead of updn; the subnet has the engine in
    use."""
    assert sweep(ring(4), workdir=tmp_path).engine == "minhop"


def test_unknown_engine_is_an_error(fabric: Topology, tmp_path: Path) -> None:
    """OpenSM itself would silently use another."""
    with pytest.raises(FabricError, match="no routing engine 'shortest'; it has updn"):
        sweep(fabric, policy=Policy(engine="shortest"), workdir=tmp_path)


def test_fabric_in_two_pieces_is_an_error(tmp_path: Path) -> None:
    """The error names the nodes that were not found."""
    builder = Builder()
    for name in ("s1", "s2"):
        builder.add_cable(builder.add_switch(name, "leaf"), builder.add_host(), Wire(10**11, 0))
    with pytest.raises(FabricError, match="did not find h2, s2: is the fabric in one piece"):
        sweep(builder.topology(), workdir=tmp_path)


def test_missing_package_is_named(
    fabric: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has the command that installs it."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "_SYSTEM_PATH", "/nowhere")
    with pytest.raises(HostError, match=r"ibsim is not installed.*apt-get install ibsim-utils"):
        sweep(fabric, workdir=tmp_path)


def test_opensm_is_ended_at_its_time_limit(
    fabric: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has the limit, and no process of OpenSM goes on running."""
    monkeypatch.setattr(opensm, "_SECONDS_TO_SWEEP", 0.0)
    monkeypatch.setattr(opensm, "_SECONDS_FOR_A_CABLE", 0.0)
    with pytest.raises(FabricError, match="OpenSM did not finish within 0 s"):
        sweep(fabric, workdir=tmp_path)
    assert str(tmp_path) not in _working_directories()


def _working_directories() -> set[str]:
    """The working directories of all processes."""
    directories = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            directories.add(str((process / "cwd").readlink()))
        except OSError:  # has ended meanwhile, or is another user's
            continue
    return directories


def test_random_numbers_of_opensm_have_one_seed(tmp_path: Path) -> None:
    """It takes the time of day for a seed."""
    draw = "import ctypes, sys; libc = ctypes.CDLL(None); libc.srand(int(sys.argv[1])); "
    drawn = {
        subprocess.check_output(
            [sys.executable, "-c", f"{draw}print(libc.rand())", seed],
            cwd=tmp_path,
            env={"LD_PRELOAD": programs.preload_in(tmp_path)},
        )
        for seed in ("1", "2")
    }
    assert len(drawn) == 1
