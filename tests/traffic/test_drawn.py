"""Random patterns: receivers, times and sizes, compared with their probabilities."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.distributions import NAMES, distribution
from traffic.graph import OperationGraph
from traffic.patterns import Messages
from traffic.random_traffic import background, hot_spot
from traffic.verb import Verb

HOSTS = [f"h{n}" for n in range(1, 13)]


def load(
    sizes: str = "hadoop", count: int = 2000, rate_bps: float = 40e9, connections: int = 1
) -> OperationGraph:
    return background(
        "b",
        HOSTS,
        distribution(sizes),
        rate_bps=rate_bps,
        count=count,
        verb=Verb.WRITE,
        start_ns=500,
        priority=None,
        random=Random(7),
        connections=connections,
    )


@given(share=st.floats(0, 1), outstanding=st.integers(1, 6), seed=st.integers())
def test_hot_spot_gets_its_share_of_every_host(share: float, outstanding: int, seed: int) -> None:
    """Exactly, because the share is of a number of messages; no host sends to itself."""
    messages = Messages(Verb.SEND, 100, count=20, outstanding=outstanding)
    graph = hot_spot("h", HOSTS, "h4", share, messages, Random(seed))
    to_hot = {flow.src: len(flow.operations) for flow in graph.flows if flow.dst == "h4"}
    assert all(to_hot.get(src, 0) == round(20 * share) for src in HOSTS if src != "h4")
    assert all(flow.src not in (flow.dst, "h4") for flow in graph.flows)
    sent = Counter(operation.src for operation in graph.operations)
    assert sent == dict.fromkeys(set(HOSTS) - {"h4"}, 20)


def test_outstanding_limit_covers_all_receivers() -> None:
    """With two outstanding messages, two of each host wait for nothing, and the others for one of
    the same host."""
    messages = Messages(Verb.WRITE, 100, count=8, outstanding=2)
    graph = hot_spot("h", HOSTS, "h1", 0.5, messages, Random(1))
    operations = graph.operations
    for src in HOSTS[1:]:
        own = [o for o in operations if o.src == src]
        assert sorted(len(o.after) for o in own) == [0] * 2 + [1] * 6
        assert {operations[before].src for o in own for before in o.after} == {src}
        assert len({before for o in own for before in o.after}) == 6


def test_hot_spot_with_one_other_host_is_refused() -> None:
    """The cold messages would have no receiver."""
    with pytest.raises(ValueError, match="beside h1"):
        hot_spot("h", ["h1", "h2"], "h1", 0.5, Messages(Verb.WRITE, 1), Random(1))


@pytest.mark.parametrize("name", NAMES)
def test_mean_of_a_distribution_is_that_of_its_curve(name: str) -> None:
    """The test integrates the quantile function, which draws the sizes."""
    sizes = distribution(name)
    heights = (np.arange(100_000) + 0.5) / 100_000
    mean = np.interp(heights, sizes.shares, sizes.sizes).mean()
    assert sizes.mean_bytes == pytest.approx(mean, rel=1e-3)
    assert [sizes.quantile(height) for height in heights[::997]] == pytest.approx(
        np.interp(heights[::997], sizes.shares, sizes.sizes).tolist()
    )


@pytest.mark.parametrize("name", NAMES)
def test_drawn_sizes_follow_the_distribution(name: str) -> None:
    """By the Kolmogorov-Smirnov bound: 24,000 draws stay within 1.63/sqrt(n) in 99 of 100 cases."""
    drawn = np.sort(load(name).size_bytes)
    sizes = distribution(name)
    expected = np.interp(drawn, sizes.sizes, sizes.shares)
    steps = np.arange(len(drawn) + 1) / len(drawn)
    distance = max(abs(expected - steps[1:]).max(), abs(expected - steps[:-1]).max())
    assert distance < 1.63 / sqrt(len(drawn))


def test_background_load_is_poisson_at_its_rate() -> None:
    """The gaps of a host have the mean of the configured rate, and an equal standard deviation."""
    graph = load("storage", rate_bps=25e9)
    mean_ns = distribution("storage").mean_bytes * 8 / 25
    times: dict[str, list[int]] = {}
    for operation in graph.operations:
        times.setdefault(operation.src, []).append(operation.not_before_ns)
    gaps = np.concatenate([np.diff(sorted([500, *own])) for own in times.values()])
    assert gaps.mean() == pytest.approx(mean_ns, rel=4 / sqrt(len(gaps)))
    assert gaps.std() == pytest.approx(mean_ns, rel=0.05)


def test_background_load_waits_for_nothing() -> None:
    """An open loop: messages start whether or not the fabric keeps up."""
    graph = load(count=50)
    assert len(graph.later) == 0
    assert {flow.src for flow in graph.flows} == set(HOSTS)
    assert all(flow.src != flow.dst and len(flow.operations) for flow in graph.flows)


def test_messages_of_a_pair_alternate_over_connections() -> None:
    """Each of three connections gets a third; the times are the same as with one."""
    one, three = load(count=200), load(count=200, connections=3)
    messages = Counter((flow.src, flow.dst) for flow in one.flows for _ in flow.operations)
    for (src, dst), count in messages.items():
        own = [flow for flow in three.flows if (flow.src, flow.dst) == (src, dst)]
        assert len({flow.connection for flow in own}) == len(own) == min(3, count)
        shares = sorted(len(flow.operations) for flow in own)
        assert sum(shares) == count
        assert shares[-1] - shares[0] <= 1

    def sent(graph: OperationGraph) -> list[tuple[str, str, int, int]]:
        return sorted((o.src, o.dst, o.size_bytes, o.not_before_ns) for o in graph.operations)

    assert sent(one) == sent(three)
