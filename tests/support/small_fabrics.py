"""Small fabrics on the virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import networkx as nx

from emu.measure.records import FlowRecord
from emu.runtime.virtual import VirtualFabric
from emu.spec.model import Spec, spec_from_text
from emu.subnet.subnet import Subnet
from topologies.graph import Port, Topology

PAIR = """
topology: {kind: dumbbell, hosts_per_side: 1, links: {host: {delay: 500ns}, fabric: {delay: 500ns}}}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 1MB}]
"""
"""Two hosts, three links of 100 Gb/s and 500 ns, two switches of 600 ns."""


def chain(links: int) -> str:
    """A spec: h1 and h2 with `links` cables of 100 Gb/s and 500 ns between them."""
    path = ["h1", *(f"s{n}" for n in range(1, links)), "h2"]
    return _graph(path[1:-1], ["h1", "h2"], list(pairwise(path))) + (
        "traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 1MB}]\n"
    )


def star(hosts: int) -> str:
    """A spec without traffic: h1, h2, ... around one switch, s1, cables as in a chain."""
    names = [f"h{n}" for n in range(1, hosts + 1)]
    return _graph(["s1"], names, [("s1", name) for name in names])


def _graph(switches: list[str], hosts: list[str], cables: list[tuple[str, str]]) -> str:
    links = "".join(
        f"    - {{between: [{a}, {b}], rate: 100Gbit, delay: 500ns}}\n" for a, b in cables
    )
    return f"""
topology:
  kind: graph
  switches: [{", ".join(switches)}]
  hosts: [{", ".join(hosts)}]
  links:
{links}"""


ONE_SWITCH = star(5)
INCAST = (
    ONE_SWITCH
    + "traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 400KB}]\n"
)
"""Four hosts write to the fifth at the same time."""


def spec_of(text: str, *settings: str) -> Spec:
    """A spec from its text, with `--set` settings."""
    return spec_from_text(text.encode(), source="test.emu.yml", settings=settings)


@contextmanager
def started(spec: Spec) -> Iterator[VirtualFabric]:
    """The spec's fabric at time 0, with its workload started."""
    topology = spec.topology.build()
    subnet = shortest_paths(topology) if spec.fabric == "ib" else None
    with VirtualFabric(spec, topology, subnet) as run:
        run.start()
        yield run


@dataclass(frozen=True)
class Outcome:
    """Flows and counters of a run."""

    flows: dict[str, FlowRecord]
    ports: dict[str, dict[str, Any]]
    """Raw counters by port name."""
    hosts: dict[str, dict[str, int]]

    def end_ns(self, flow: str) -> int:
        """The time when a finished flow ended."""
        end_ns = self.flows[flow].end_ns
        assert end_ns is not None, f"{flow} did not finish"
        return end_ns

    def total(self, counter: str) -> int:
        return sum(sum(own[counter]) for own in self.ports.values())

    @property
    def last_end_ns(self) -> int:
        return max(self.end_ns(flow) for flow in self.flows)


def finish(run: VirtualFabric, *, within_ns: int = 20_000_000) -> Outcome:
    """Runs until every operation is over, or for `within_ns`."""
    while not run.finished and run.now_ns < within_ns:
        run.run_until(run.now_ns + 10_000)
    return outcome_so_far(run)


def outcome_so_far(run: VirtualFabric) -> Outcome:
    """The outcome at the run's present time."""
    seen = run.observe()
    assert seen.frames_exhausted == 0
    ports = {name: dict(counters) for name, counters in seen.ports.items()}
    return Outcome({flow.name: flow for flow in seen.flows}, ports, seen.nics or {})


def outcome_of(text: str, *settings: str) -> Outcome:
    """The outcome of a whole run of the spec."""
    with started(spec_of(text, *settings)) as run:
        return finish(run)


def shortest_paths(topology: Topology) -> Subnet:
    """LFTs of shortest paths, lowest port first: enough of a subnet manager for one-path tests."""
    hosts = [host.name for host in topology.hosts]
    switches = [switch.name for switch in topology.switches]
    lids = {node: lid for lid, node in enumerate(hosts + switches, start=1)}
    lfts = {
        switch: {lids[host]: ports[0].number for host, ports in routes.items()}
        for switch, routes in topology.next_hops.items()
    }
    return Subnet(lids, lfts, engine="none", seconds=0.0)


def tree_paths(topology: Topology) -> Subnet:
    """LFTs of the shortest paths in a tree of the fabric's cables, which form no credit loop."""
    tree = nx.minimum_spanning_edges(nx.Graph(topology.graph), data=True)
    cables = tuple(edge["cable"] for _, _, edge in tree)
    return shortest_paths(replace(topology, cables=cables))


def port(run: VirtualFabric, name: str) -> Port:
    return run.topology.port_named[name]
