"""Fabrics that the lab tests build."""

from __future__ import annotations

import json
from typing import Any

from emu.spec.scenario import Spec
from topologies.graph import Topology, Wire
from topologies.leaf_spine import leaf_spine

RATE_BPS = 100_000_000_000
DELAY_PS = 25_000


def clos(hosts_per_leaf: int) -> Topology:
    """Two spines, two leaves: h1 is in one rack, the last host in the other."""
    return leaf_spine(
        2,
        2,
        hosts_per_leaf,
        host_wire=Wire(RATE_BPS, DELAY_PS),
        fabric_wire=Wire(RATE_BPS, DELAY_PS),
    )


def clos_of(hosts_per_leaf: int, **switches: Any) -> Spec:
    """The same fabric as a spec, with seed 7."""
    text = clos_spec(**switches)
    topology = json.loads(text)["topology"] | {"hosts_per_leaf": hosts_per_leaf}
    return Spec.model_validate(json.loads(text) | {"topology": topology, "seed": 7})


def clos_spec(fabric: str = "roce", **switches: Any) -> str:
    """The spec of the same fabric with two hosts per leaf, as the lab receives it."""
    links = {
        "host": {"rate": "100Gbit", "length": "5m"},
        "fabric": {"rate": "100Gbit", "length": "5m"},
    }
    topology = {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 2, "links": links}
    spec = {"name": "clos", "fabric": fabric, "topology": topology, "switches": switches}
    return json.dumps(spec)


ROCE = """
name: pair
slowdown: 500
topology: {kind: dumbbell, hosts_per_side: 1}
switches: {pfc: {}}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 200KB}]
"""
INFINIBAND = ROCE.replace("switches: {pfc: {}}", "fabric: ib")
