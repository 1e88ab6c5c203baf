"""Fabrics that the tests of the lab build."""

from __future__ import annotations

import json

from topologies.graph import Topology
from topologies.leaf_spine import leaf_spine

RATE_BPS = 100_000_000_000
DELAY_PS = 25_000


def clos(hosts_per_leaf: int) -> Topology:
    """Two spines, two leaves: h1 is in one rack, the last host in the other."""
    return leaf_spine(
        2,
        2,
        hosts_per_leaf,
        host_rate_bps=RATE_BPS,
        host_delay_ps=DELAY_PS,
        fabric_rate_bps=RATE_BPS,
        fabric_delay_ps=DELAY_PS,
    )


def clos_spec(fabric: str = "roce", **switches: object) -> str:
    """The spec of the same, with two hosts a leaf, as the lab gets it."""
    links = {
        "host": {"rate": "100Gbit", "length": "5m"},
        "fabric": {"rate": "100Gbit", "length": "5m"},
    }
    topology = {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 2, "links": links}
    spec = {"name": "clos", "fabric": fabric, "topology": topology, "switches": switches}
    return json.dumps(spec)
