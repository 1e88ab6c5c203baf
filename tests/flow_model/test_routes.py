"""The routes of the flow model are those that packets take."""

from __future__ import annotations

import numpy as np
import pytest

from emu.flow_model.network import Network, network_of
from emu.measure.recording import Recording
from tests.support.flow_runs import by_flows, subnet_of, with_packets
from tests.support.small_fabrics import spec_of

LEAF_SPINE = "topology: {kind: leaf-spine, leaves: 3, spines: 4, hosts_per_leaf: 4}\n"
FAT_TREE = "topology: {kind: fat-tree, k: 4}\n"
PERMUTATION = "traffic: [{name: p, pattern: permutation, among: h1-h12, size: 400KB}]\n"
BUFFERS = "switches: {buffer: 64MB, pfc: {}}\npayload: elided\n"


def network(text: str, *settings: str) -> Network:
    spec = spec_of(text, *settings)
    return network_of(spec, spec.topology.build(), spec.workload(), subnet_of(spec))


def carried(recording: Recording, more_than: int = 0) -> dict[str, int]:
    """The bytes that each port sent."""
    series = recording.series
    sent = dict(zip(series.ports, series.tx_bytes[-1].tolist(), strict=True))
    return {port: count for port, count in sent.items() if count > more_than}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", ["ecmp", "ecmp-qp"])
@pytest.mark.parametrize("topology", [LEAF_SPINE, FAT_TREE])
def test_hashes_choose_the_same_ports(topology: str, kind: str, seed: int) -> None:
    """Every port carries what it carries with packets, acknowledgements too."""
    text = topology + BUFFERS + PERMUTATION
    settings = (f"switches.routing.kind={kind}", f"seed={seed}")
    assert carried(by_flows(text, *settings)) == carried(with_packets(text, *settings))


@pytest.mark.parametrize(
    "setting", ["hosts.nic.ack_every=1", "hosts.nic.cc=dctcp", "traffic.p.op=send"]
)
def test_ports_carry_all_acknowledgements(setting: str) -> None:
    """One for each packet, or for 16."""
    text = LEAF_SPINE + BUFFERS + PERMUTATION
    assert carried(by_flows(text, setting)) == carried(with_packets(text, setting))


def test_requests_of_reads_travel_back() -> None:
    """The port of a request carries it; the first and last packet of a response have 4 bytes more
    than the model knows."""
    text = LEAF_SPINE + BUFFERS + PERMUTATION
    packets = carried(with_packets(text, "traffic.p.op=read"))
    assert carried(by_flows(text, "traffic.p.op=read")) == pytest.approx(packets, abs=8 * 12)


@pytest.mark.parametrize("topology", [LEAF_SPINE, FAT_TREE])
def test_tables_of_the_subnet_manager_are_followed(topology: str) -> None:
    """On InfiniBand, where cables also carry a flow-control packet for each packet that leaves a
    buffer. Few of them serve two packets, and there are some before the first."""
    text = topology + "payload: elided\n" + PERMUTATION
    packets = carried(with_packets(text, "fabric=ib"), more_than=50_000)
    flow = carried(by_flows(text, "fabric=ib"), more_than=50_000)
    assert flow == pytest.approx(packets, rel=0.0005)


def test_pinned_flows_take_their_paths() -> None:
    """Other flows follow the hash."""
    text = (
        LEAF_SPINE + BUFFERS + "traffic: [{name: f, pattern: pair, from: h1, to: h5, size: 1MB}]\n"
    )
    for spine in ("spine1", "spine3"):
        recording = by_flows(
            text, "switches.routing.kind=pinned", f"switches.routing.paths.f={spine}"
        )
        assert f"leaf1:{spine}" in carried(recording)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("kind", ["spray", "adaptive"])
def test_packets_are_spread_evenly(kind: str, fabric: str) -> None:
    """Each of four equal ports carries a quarter."""
    text = LEAF_SPINE + "traffic: [{name: f, pattern: pair, from: h1, to: h5, size: 1MB}]\n"
    sent = carried(
        by_flows(
            text,
            f"fabric={fabric}",
            f"switches.routing.kind={kind}",
            "hosts.nic.recovery=selective-repeat",
            "hosts.nic.reordering=1024",
        )
    )
    ups = [sent[f"leaf1:spine{number}"] for number in range(1, 5)]
    assert len(set(ups)) == 1
    assert sum(ups) == pytest.approx(sent["h1:leaf1"], abs=4)


def test_equal_links_are_one() -> None:
    """Of the links over which everything is spread alike, one stands for all."""
    text = FAT_TREE + "traffic: [{name: a, pattern: all-to-all, among: h1-h16, size: 1KB}]\n"
    settings = (
        "switches.routing.kind=spray",
        "hosts.nic.recovery=selective-repeat",
        "hosts.nic.reordering=1024",
    )
    found = network(text, *settings)
    assert np.diff(found.first).max() <= 6


def test_flows_of_one_route_share_it() -> None:
    """Eight messages between the same two hosts of a leaf have one route."""
    entries = ", ".join(
        f"{{name: f{n}, pattern: pair, from: h1, to: h2, size: 1KB}}" for n in range(8)
    )
    found = network(LEAF_SPINE + f"traffic: [{entries}]\n")
    assert len(set(found.route_of_flow.tolist())) == 1
    assert len(found.first) == 2
