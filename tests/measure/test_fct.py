"""FCT slowdown: buckets by size, compared with numpy, and lone messages."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY, Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.measure import bound
from emu.measure.bound import Batch, Bound, fabric_of, last_finish_bound
from emu.measure.fct import alone_ns, fct_slowdowns
from emu.measure.requests import UNFINISHED, UNKNOWN, Requests
from emu.runtime.virtual import VirtualRunner
from tests.support.small_fabrics import shortest_paths, spec_of

LOAD = """
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 2, links: {fabric: {rate: RATE}}}
payload: elided
hosts: {nic: {timeout: 8}}
traffic:
  - name: load
    pattern: background
    among: all
    sizes: websearch
    rate: 2Gbit
    count: 4
    connections: 4
    start: 5us
"""
"""The load is a fiftieth of the links' capacity, so two messages are rarely in flight at a time."""


@given(seed=st.integers(0, 2**32), count=st.integers(1, 300), sizes=st.integers(1, 1000))
def test_buckets_are_tenths_by_size(seed: int, count: int, sizes: int) -> None:
    """Together they have all messages, each bucket above the one before; percentiles follow numpy's
    `linear`."""
    random = np.random.default_rng(seed)
    carries = random.integers(1, sizes + 1, count)
    alone_ns = random.integers(1, 10**6, count)
    slowdown = 1 + random.random(count) * 9
    requests = Requests(
        ("load",),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.rint(slowdown * alone_ns).astype(np.int64),
        carries=carries,
        alone_ns=alone_ns,
    )
    (found,) = fct_slowdowns(requests)
    measured = requests.end_ns / alone_ns
    assert found.whole.mean == pytest.approx(measured.mean())
    assert found.whole.p95 == np.quantile(measured, 0.95, method="linear")
    assert sum(bucket.messages for bucket in found.buckets) == count
    edges = [0, *(bucket.up_to_bytes for bucket in found.buckets)]
    assert edges == sorted(set(edges))
    assert edges[-1] == found.whole.up_to_bytes == carries.max()
    for low, bucket in zip(edges, found.buckets, strict=False):
        own = measured[(carries > low) & (carries <= bucket.up_to_bytes)]
        assert bucket.messages == len(own)
        assert bucket.p99 == np.quantile(own, 0.99, method="linear")
    if len(set(carries.tolist())) == count:
        assert max(b.messages for b in found.buckets) <= -(-count // 10)


def test_unfinished_are_counted_and_unknown_left_out() -> None:
    """Of four messages one never ended, and one has no known time on an idle fabric."""
    requests = Requests(
        ("load", "other"),
        np.array([0, 0, 0, 1]),
        np.zeros(4, np.int64),
        np.array([20, 60, UNFINISHED, 50]),
        carries=np.array([1, 2, 3, 4]),
        alone_ns=np.array([10, 20, 30, UNKNOWN]),
    )
    (found,) = fct_slowdowns(requests)
    assert (found.traffic, found.whole.messages, found.whole.unfinished) == ("load", 3, 1)
    assert (found.whole.mean, found.whole.p50, found.whole.p99) == (2.5, 2.5, 2.99)
    assert (found.buckets[-1].unfinished, found.buckets[-1].mean) == (1, None)


def test_similar_paths_are_calculated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve hosts of three switches, one with a slow cable: paths between four kinds of hosts.
    Each message has the time that a separate calculation gives."""
    text = LOAD.replace("RATE", "400Gbit").replace("hosts_per_leaf: 2", "hosts_per_leaf: 4")
    slow = "topology.cables=[{cable: 'leaf1:h2', rate: 10Gbit}]"
    spec = spec_of(text, "topology.leaves=3", slow, "traffic.0.count=30")
    topology, graph = spec.topology.build(), spec.workload()
    looks = Mock(wraps=bound.Paths._made_segment)
    monkeypatch.setattr(bound.Paths, "_made_segment", lambda *arguments: looks(*arguments))
    alone = alone_ns(spec, topology)
    assert looks.call_count <= len(topology.hosts) ** 2 < len(graph.flows)
    fabric = fabric_of(spec, topology)
    for id in range(0, len(alone), 7):
        flow, size = graph.flows[graph.flow_of[id]], int(graph.size_bytes[id])
        only = Batch(flow.src, flow.dst, flow.verb, size)
        assert last_finish_bound(topology, [only], fabric) == Bound(alone[id], ANY)


@pytest.mark.parametrize("rate", ["25Gbit", "400Gbit"])
@pytest.mark.parametrize("op", ["write", "send", "read"])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_lone_message_has_no_slowdown(fabric: str, op: str, rate: str, tmp_path: Path) -> None:
    """For any size, and slower or faster links in the middle, the slowdown is 1, and at most a
    thousandth or a few flow-control packets more."""
    text = LOAD.replace("RATE", rate)
    spec = spec_of(text, f"fabric={fabric}", f"traffic.0.op={op}")
    topology = spec.topology.build()
    subnet = shortest_paths(topology) if fabric == "ib" else None
    requests = VirtualRunner(subnet).run(spec, out=tmp_path).requests
    slowdown = (requests.end_ns - requests.start_ns) / requests.alone_ns
    assert slowdown.min() > 0.999
    assert np.median(slowdown) < 1.002
