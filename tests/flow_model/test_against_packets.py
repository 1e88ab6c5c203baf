"""The flow model against packets on the virtual clock: without loss they agree within 5 %."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.flow_runs import by_flows, last_end_ns, with_packets

WITHIN = 0.05
TOPOLOGIES = {
    "leaf-spine": "{kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 4, "
    "links: {host: {rate: 100Gbit}, fabric: {rate: 400Gbit}}}",
    "fat-tree": "{kind: fat-tree, k: 4}",
    "star": "{kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 16}",
}
PATTERNS = {
    "ring": "pattern: all-reduce, algorithm: ring, size: 4MB",
    "tree": "pattern: all-reduce, algorithm: tree, size: 2MB",
    "double-tree": "pattern: all-reduce, algorithm: double-tree, size: 2MB",
    "alltoall": "pattern: alltoall, size: 4MB",
    "permutation": "pattern: permutation, size: 2MB",
    "broadcast": "pattern: broadcast, size: 2MB",
}
PFC = "switches: {buffer: 64MB, pfc: {xoff: 200KB}}\n"


def spec_text(topology: str, pattern: str, more: str = "") -> str:
    return (
        f"topology: {TOPOLOGIES[topology]}\npayload: elided\n{more}"
        f"traffic: [{{name: job, among: h1-h16, {PATTERNS[pattern]}}}]\n"
    )


def agree(text: str, *settings: str, within: float = WITHIN) -> None:
    """Asserts that both models end within 5 %, or less, of each other."""
    packets, flow = with_packets(text, *settings), by_flows(text, *settings)
    assert packets.totals["retransmitted_packets"] == 0
    assert last_end_ns(flow) == pytest.approx(last_end_ns(packets), rel=within)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_collectives_on_ethernet(topology: str, pattern: str) -> None:
    """Hashes put several flows on some links, and both models know which."""
    agree(spec_text(topology, pattern, PFC))


@pytest.mark.parametrize(
    ("topology", "pattern"),
    [pair for pair in product(TOPOLOGIES, PATTERNS) if pair != ("fat-tree", "permutation")],
)
def test_collectives_on_infiniband(topology: str, pattern: str) -> None:
    """By the subnet manager's tables, here shortest paths. In the fat tree they put several flows
    of a permutation on one link, and others wait behind them (test_limits)."""
    agree(spec_text(topology, pattern), "fabric=ib")


@pytest.mark.parametrize("pattern", ["ring", "alltoall", "tree"])
def test_servers_with_links_inside(pattern: str) -> None:
    """Messages within a server take its own links."""
    text = (
        "topology: {kind: rail, servers: 4, rails: 4, spines: 2}\nhosts: {gpus: 4}\n"
        f"payload: elided\n{PFC}traffic: [{{name: job, among: h1-h16, {PATTERNS[pattern]}}}]\n"
    )
    agree(text)


@pytest.mark.parametrize("pattern", ["ring", "alltoall"])
def test_sprayed_packets(pattern: str) -> None:
    """All equal ports carry the same."""
    agree(
        spec_text("leaf-spine", pattern, PFC),
        "switches.routing.kind=spray",
        "hosts.nic.recovery=selective-repeat",
        "hosts.nic.reordering=1024",
    )


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("pattern", ["ring", "alltoall"])
def test_what_goes_back_takes_room(pattern: str, fabric: str, recovery: str) -> None:
    """With selective-repeat, which acknowledges each packet, 2 % of the cables on Ethernet."""
    more = PFC if fabric == "roce" else ""
    agree(
        spec_text("star", pattern, more),
        f"fabric={fabric}",
        f"hosts.nic.recovery={recovery}",
        within=0.001,
    )


@pytest.mark.parametrize("path", ["gpudirect", "host-staged"])
def test_paths_between_nic_and_memory(path: str) -> None:
    """Their latencies, and their rate where it is the limit."""
    agree(
        spec_text("star", "ring", PFC),
        f"hosts.path.kind={path}",
        "hosts.path.pcie=80Gbit",
        "hosts.path.buffer=1MB",
    )


@pytest.mark.parametrize("verb", ["write", "send", "read"])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_verbs(verb: str, fabric: str) -> None:
    """A READ's bytes come from the other end, after its request."""
    agree(
        "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\npayload: elided\n"
        f"traffic: [{{name: f, pattern: pair, from: h1, to: h4, op: {verb}, size: 300KB}}]\n",
        f"fabric={fabric}",
    )


def test_a_training_step() -> None:
    """Computation, and collectives inside servers and between them."""
    agree(
        "topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 4, "
        "links: {host: {rate: 100Gbit}, fabric: {rate: 400Gbit}}}\n"
        f"payload: elided\n{PFC}hosts: {{gpus: 2}}\n"
        "traffic: [{name: step, pattern: training-step, among: h1-h16, layers: 4, hidden: 1024, "
        "sequence: 256, micro_batches: 4, tensor: 2, pipeline: 2, tflops: 100}]\n"
    )
