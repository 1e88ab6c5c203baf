"""The picture of the fabric: places of nodes, and the load of each direction of a cable."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emu.report.palette import LOAD, load_colour
from emu.report.picture import DISC_RADIUS, Picture, picture
from emu.report.run_view import RunFacts
from tests.support.synthetic import four_fabrics, record, run, spec

PARALLEL = {
    "kind": "graph",
    "hosts": ["h1", "h2"],
    "switches": ["left", "right"],
    "links": [
        {"between": ends, "rate": "100Gbit", "delay": "500ns"}
        for ends in (["left", "right"], ["left", "right"], ["left", "h1"], ["right", "h2"])
    ],
}


def drawing(of: RunFacts) -> Picture:
    """The picture of a fabric that is small enough to have one."""
    drawn = picture(of)
    assert drawn is not None
    return drawn


def test_hosts_are_below_their_switches() -> None:
    """The layer of a node is its distance from the hosts."""
    drawn = drawing(four_fabrics()[0])
    height = {node.name: node.y for node in drawn.nodes}
    assert height["h1"] == height["h8"] > height["leaf1"] == height["leaf2"] > height["spine1"]


def test_nodes_do_not_touch() -> None:
    """Neighbours in a layer have a gap between them."""
    hosts = [node for node in drawing(four_fabrics()[0]).nodes if node.is_host]
    for left, right in pairwise(hosts):
        assert left.x + left.width / 2 < right.x - right.width / 2


def test_each_half_of_a_cable_shows_its_own_port() -> None:
    """leaf1 sends to h1 all the time, and h1 sends nothing."""
    halves = {half.title.split(" ")[0]: half for half in drawing(four_fabrics()[1]).halves}
    assert halves["leaf1:h1:"].title == "leaf1:h1: 92.6% busy, 0.0% of the time paused"
    assert halves["leaf1:h1:"].colour == LOAD[5].css
    assert halves["h1:leaf1:"].colour == LOAD[0].css
    assert halves["h2:leaf1:"].disc_radius == pytest.approx(DISC_RADIUS * 0.7**0.5, rel=0.01)
    assert halves["h1:leaf1:"].disc_radius == 0


def test_parallel_cables_lie_beside_each_other() -> None:
    """Two cables between the same switches are two lines."""
    pair = {"name": "pair", "pattern": "pair", "from": "h1", "to": "h2", "size": "1MB"}
    scenario = spec(topology=PARALLEL, traffic=[pair], verify=[])
    drawn = drawing(run(record(scenario, ends_ns={"pair": 90_000}), scenario))
    assert len({half.y1 for half in drawn.halves if half.title.startswith("left:right")}) == 2


@pytest.mark.parametrize(
    ("utilisation", "step"), [(0, 0), (0.004, 0), (0.01, 1), (0.2, 2), (0.99, 5), (1, 5)]
)
def test_each_load_has_its_colour(utilisation: float, step: int) -> None:
    """Idle has its own colour, and a full link the last."""
    assert load_colour(utilisation) is LOAD[step]
