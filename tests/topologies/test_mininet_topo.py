"""The topologies as Mininet's topologies. No network is started."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from topologies.graph import Wire
from topologies.leaf_spine import leaf_spine
from topologies.mininet_topo import all_topos, as_mininet

FOLDER = Path(__file__).parents[2] / "topologies"

pytest.importorskip("mininet.topo", reason="apt install mininet")


def test_names_ports_and_links_match() -> None:
    """Port numbers as in the graph; rate in Mbit/s and delay on every link."""
    ours = leaf_spine(
        2, 2, 2,
        host_wire=Wire(100_000_000, 25_000),
        fabric_wire=Wire(1_000_000_000, 500_000),
    )  # fmt: skip
    topo = as_mininet(ours)
    assert sorted(topo.hosts()) == ["h1", "h2", "h3", "h4"]
    assert sorted(topo.switches()) == ["leaf1", "leaf2", "spine1", "spine2"]
    for cable in ours.cables:
        assert topo.port(cable.a.node, cable.b.node) == (cable.a.number, cable.b.number)
    assert topo.linkInfo("leaf1", "h1")["bw"] == 100
    assert topo.linkInfo("leaf1", "h1")["delay"] == "25ns"
    assert topo.linkInfo("leaf1", "spine1")["bw"] == 1000
    assert topo.nodeInfo("h3")["ip"] == "10.0.0.3/8"
    assert topo.nodeInfo("spine2")["dpid"] == "0000000000000002"


@pytest.mark.parametrize(
    ("file", "name", "sizes", "hosts"),
    [
        ("leaf_spine.py", "leaf_spine", (2, 2, 4), 8),
        ("fat_tree.py", "fat_tree", (4,), 16),
        ("dumbbell.py", "dumbbell", (3,), 6),
        ("ring.py", "ring", (5, 2), 10),
        ("torus.py", "torus", (3, 4, 2), 24),
        ("parking_lot.py", "parking_lot", (3, 2), 6),
        ("rail.py", "rail", (2, 4, 2), 8),
    ],
)
def test_mn_finds_the_topology_in_its_custom_file(
    file: str, name: str, sizes: tuple[int, ...], hosts: int
) -> None:
    """Like `mn --custom FILE --topo NAME,SIZES`: execute the file, and call the entry of
    `topos`."""
    custom: dict[str, Any] = {}
    exec(compile((FOLDER / file).read_text(), file, "exec"), custom)
    topo = custom["topos"][name](*sizes)
    assert len(topo.hosts()) == hosts


def test_all_topos_has_those_of_every_custom_file() -> None:
    named = (re.search(r"^topos = {(.*)}", file.read_text(), re.M) for file in FOLDER.glob("*.py"))
    assert sorted(all_topos()) == sorted(
        name for found in named if found for name in re.findall(r'"(\w+)":', found[1])
    )
