"""Paths through forwarding tables, and tables as JSON."""

from __future__ import annotations

import pytest

from emu.daemon.messages import BorrowedNic
from emu.errors import FabricError
from emu.lab.ipc.codec import from_line, to_line
from emu.subnet.subnet import Subnet
from topologies.graph import Builder, Topology, Wire


def two_switches() -> Topology:
    """h1 - s1 - s2 - h2; the switches connect at port 2."""
    builder = Builder()
    for name in ("s1", "s2"):
        builder.add_cable(builder.add_switch(name, "leaf"), builder.add_host(), Wire(1, 0))
    builder.add_cable("s1", "s2", Wire(1, 0))
    return builder.topology()


LIDS = {"h1": 1, "h2": 2, "s1": 3, "s2": 4}
GOOD = Subnet(LIDS, {"s1": {1: 1, 2: 2, 3: 0}, "s2": {1: 2, 2: 1, 4: 0}}, "minhop", 0.1)


@pytest.mark.parametrize(
    ("src", "ports"), [("h1", ["h1-eth0", "s1-eth2", "s2-eth1"]), ("s2", ["s2-eth1"]), ("h2", [])]
)
def test_path_follows_the_tables(src: str, ports: list[str]) -> None:
    """From a host it begins with the host's port; from a switch, with that switch's."""
    assert [port.interface for port in GOOD.path(two_switches(), src, "h2")] == ports


def test_missing_route_is_an_error() -> None:
    """The error names the switch without a route."""
    lost = Subnet(LIDS, {"s1": {2: 2}, "s2": {}}, "updn", 0.1)
    with pytest.raises(FabricError, match="no route from s2 to h2"):
        lost.path(two_switches(), "h1", "h2")


def test_forwarding_loop_is_an_error() -> None:
    """Two switches that forward a packet to each other; the search ends."""
    loop = Subnet(LIDS, {"s1": {2: 2}, "s2": {2: 2}}, "minhop", 0.1)
    with pytest.raises(FabricError, match="from h1 to h2 is a loop"):
        loop.path(two_switches(), "h1", "h2")


def test_json_round_trip() -> None:
    """LIDs are integers again, although JSON's keys are text."""
    assert from_line(to_line(BorrowedNic(1, GOOD))) == BorrowedNic(1, GOOD)
