"""The `traffic:` section: patterns count their flows and messages; the seed decides random ones."""

from __future__ import annotations

from typing import NoReturn

import pytest

from emu.spec.model import AllToAll, Permutation, Spec, spec_from_text
from emu.spec.traffic.entry import TrafficEntry

PATTERNS = {
    "incast": "pattern: incast, from: h2-h8, to: h1, count: 3, size: 10KB",
    "outcast": "pattern: outcast, from: h1, to: h2-h5, count: 2, op: read, size: 10KB",
    "pair": "pattern: pair, from: h1-h3, to: h4-h6, count: 2, size: 10KB",
    "permutation": "pattern: permutation, among: h1-h8, count: 2, size: 10KB",
    "all-to-all": "pattern: all-to-all, among: h1-h5, op: send, size: 10KB",
    "all-reduce": "pattern: all-reduce, algorithm: ring, among: h1-h7, size: 10KB",
    "tree": "pattern: all-reduce, algorithm: double-tree, among: h1-h7, size: 10KB, channels: 2",
    "tiers": "pattern: all-reduce, algorithm: hierarchical, gpus: 4, among: h1-h8, size: 10KB",
    "reduce-scatter": "pattern: reduce-scatter, among: h1-h7, size: 10KB, chunk: 100B",
    "all-gather": "pattern: all-gather, among: all, size: 10KB",
    "storage": "pattern: storage, from: h1-h3, to: [h5, h6], reads: 70%, count: 9, queues: 2",
    "large writes": "pattern: storage, from: h1, to: h5, reads: 30%, count: 9, block: 64KB",
    "alltoall": "pattern: alltoall, among: h1-h7, size: 10KB",
}


def spec(*entries: str, seed: int = 1) -> Spec:
    lines = ["topology: {kind: ring, switches: 4, hosts_per_switch: 4}", f"seed: {seed}"]
    lines += ["traffic:", *(f"  - {{{entry}}}" for entry in entries)]
    return spec_from_text("\n".join(lines).encode(), source="ring.emu.yml")


def test_rules_list_flows_only_for_a_name_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be millions of flows."""

    def refuse(entry: object, seed: int) -> NoReturn:
        raise Listed

    monkeypatch.setattr(TrafficEntry, "ends", refuse)
    monkeypatch.setattr(AllToAll, "pairs", refuse)
    spec(f"name: a, {PATTERNS['all-to-all']}")
    with pytest.raises(Listed):
        spec_from_text(
            b"topology: {kind: ring, switches: 4, hosts_per_switch: 4}\n"
            b"traffic: [{name: a, pattern: all-to-all, among: h1-h5, size: 10KB}]\n"
            b"verify: [{goodput: {flow: a.h1-h2, at_least: 1Gbit}}]\n",
            source="named.emu.yml",
        )


class Listed(Exception):
    pass


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_entrys_counts_equal_those_of_its_graph(pattern: str) -> None:
    """Limits are checked with these counts before the graph is built."""
    loaded = spec(f"name: a, start: 5us, priority: 2, {PATTERNS[pattern]}")
    entry, graph = loaded.traffic[0], loaded.workload()
    assert entry.flow_count == len(graph.flows)
    assert entry.message_count == len(graph.operations)
    assert entry.total_bytes == graph.total_bytes
    ends = {flow.name: (flow.src, flow.dst) for flow in graph.message_flows}
    assert entry.ends(loaded.seed) == ends
    assert {flow.src for flow in graph.flows} == set(entry.senders)
    assert {flow.priority for flow in graph.flows} == {2}
    assert set(graph.not_before_ns.tolist()) == {5_000}


def test_the_seed_decides_the_permutation() -> None:
    """The same seed gives the same pairs and another seed other pairs.

    Other entries have no effect.
    """
    entry = f"name: a, {PATTERNS['permutation']}"
    pairs = [flow.dst for flow in spec(entry).workload().flows]
    assert [flow.dst for flow in spec(entry).workload().flows] == pairs
    assert [flow.dst for flow in spec(entry, seed=2).workload().flows] != pairs
    both = spec(f"name: b, {PATTERNS['incast']}", entry).workload()
    assert [flow.dst for flow in both.flows if flow.traffic == "a"] == pairs


def test_two_permutations_of_a_spec_differ() -> None:
    """Each entry has its own random numbers."""
    loaded = spec(
        *(f"name: {name}, pattern: permutation, among: h1-h16, size: 1KB" for name in "ab")
    )
    first, second = (entry.pairs(loaded.seed) for entry in loaded.traffic)
    assert first != second


DRAWN = {
    "hot-spot": "pattern: hot-spot, among: h1-h8, hot: h3, share: 30%, count: 10, size: 10KB",
    "background": "pattern: background, among: h1-h8, sizes: hadoop, rate: 10Gbit, count: 50",
}


@pytest.mark.parametrize("pattern", DRAWN)
def test_random_traffic_repeats_with_the_seed(pattern: str) -> None:
    """The flow count is an upper bound, and the message count is exact."""
    entry = spec(f"name: a, priority: 2, {DRAWN[pattern]}").traffic[0]
    graph = entry.graph(seed=1)
    assert graph == entry.graph(seed=1)
    assert graph != entry.graph(seed=2)
    assert len(graph.flows) <= entry.flow_count
    assert len(graph.operations) == entry.message_count
    assert entry.ends(1) == {flow.name: (flow.src, flow.dst) for flow in graph.flows}
    assert {flow.src for flow in graph.flows} == set(entry.senders)
    assert {flow.priority for flow in graph.flows} == {2}


def test_the_pattern_decides_the_type_of_an_entry() -> None:
    """`pattern` decides which keys an entry has."""
    loaded = spec(*(f"name: {name}, {PATTERNS[name]}" for name in ("permutation", "all-to-all")))
    assert [type(entry) for entry in loaded.traffic] == [Permutation, AllToAll]
