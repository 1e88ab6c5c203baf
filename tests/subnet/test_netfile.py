"""The topology file that ibsim reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emu.subnet.netfile import net_file
from topologies.graph import Builder, Wire
from topologies.leaf_spine import leaf_spine

GBIT = 10**9


def test_leaf_spine_as_net_file(golden: Callable[[str, str], None]) -> None:
    """Two spines, two leaves, two hosts on each: names, GUIDs, both ends of every cable, speeds."""
    topology = leaf_spine(
        spines=2,
        leaves=2,
        hosts_per_leaf=2,
        host_wire=Wire(100 * GBIT, 25_000),
        fabric_wire=Wire(200 * GBIT, 500_000),
    )
    golden("leaf-spine.net", net_file(topology))


@pytest.mark.parametrize(
    ("rate_gbit", "options"),
    [(400, "s=7 e=4"), (100, "s=7 e=2"), (99, "s=7 e=1"), (41, "s=4"), (26, "s=2"), (1, "s=1")],
)
def test_link_gets_the_fastest_speed_it_carries(rate_gbit: int, options: str) -> None:
    """HDR is the fastest that ibsim knows, SDR the slowest of all."""
    builder = Builder()
    leaf, host = builder.add_switch("leaf1", "leaf"), builder.add_host()
    builder.add_cable(leaf, host, Wire(rate_gbit * GBIT, 0))
    assert f'[1] "h1"[1] {options}\n' in net_file(builder.topology())
