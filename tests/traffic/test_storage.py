"""Storage as a graph: the operations of each I/O, their dependencies, and the queue depth."""

from __future__ import annotations

from collections import Counter
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.graph import Asks, OperationGraph, together
from traffic.storage import Ios, storage
from traffic.verb import Verb

PAIRS = [("h1", "h3"), ("h2", "h3")]


def graph_of(ios: Ios, queues: int = 1) -> OperationGraph:
    return storage("disk", PAIRS, queues, ios, Random(3))


def story(graph: OperationGraph, request: int) -> list[tuple[str, str, int]]:
    """An I/O's operations in order: verb, direction, bytes."""
    operations = graph.operations
    begin, end = int(graph.begins[request]), int(graph.ends[request])
    dependencies = graph.dependencies()
    follows = nx.descendants(dependencies, begin) | {begin}
    siblings = set(dependencies.successors(next(iter(dependencies.predecessors(end)))))
    own = follows & (nx.ancestors(dependencies, end) | siblings)
    return [
        (operations[id].verb.value, operations[id].src + operations[id].dst, graph.size_bytes[id])
        for id in sorted(own)
    ]


@pytest.mark.parametrize(
    ("block_bytes", "read_share", "expected"),
    [
        (
            8192,
            1,
            [
                ("send", "h1h3", 64),
                ("compute", "h3h3", 0),
                ("write", "h3h1", 8192),
                ("send", "h3h1", 16),
            ],
        ),
        (
            8192,
            0,
            [
                ("send", "h1h3", 64),
                ("compute", "h3h3", 0),
                ("read", "h3h1", 8192),
                ("send", "h3h1", 16),
            ],
        ),
        (
            4096,
            0,
            [("send", "h1h3", 64 + 4096), ("compute", "h3h3", 0), ("send", "h3h1", 16)],
        ),
    ],
    ids=["read", "write", "write in capsule"],
)
def test_io_sends_what_nvme_over_fabrics_sends(
    block_bytes: int, read_share: float, expected: list[tuple[str, str, int]]
) -> None:
    """A command of 64 bytes, a response of 16, and the data with the verb of the I/O's
    direction."""
    graph = graph_of(Ios(1, 1, block_bytes, read_share, in_capsule_bytes=4096))
    assert story(graph, 0) == expected


def test_drive_works_after_write_data_and_before_read_data() -> None:
    """READ, then work, then the response; or work, then WRITE and response at the same time."""
    for share, before, after in (
        (0, {Verb.READ}, {Verb.SEND}),
        (1, {Verb.SEND}, {Verb.WRITE, Verb.SEND}),
    ):
        graph = graph_of(Ios(1, 1, 8192, share, 0, read_media_ns=80, write_media_ns=20))
        (work, *_) = [o for o in graph.operations if o.verb is Verb.COMPUTE]
        waits = graph.dependencies()
        assert {graph.operations[id].verb for id in waits.predecessors(work.id)} == before
        assert {graph.operations[id].verb for id in waits.successors(work.id)} == after
        assert work.lasts_ns == (80 if share else 20)


@given(
    count=st.integers(1, 40),
    depth=st.integers(1, 50),
    share=st.floats(0, 1),
    block_bytes=st.sampled_from([512, 4096, 65536]),
    queues=st.integers(1, 3),
)
def test_queue_depth_limits_the_ios_in_flight(
    count: int, depth: int, share: float, block_bytes: int, queues: int
) -> None:
    """With equally fast drives, I/O n starts when n - depth is over; the first ones start at
    once."""
    ios = Ios(count, depth, block_bytes, share, 4096)
    graph = graph_of(ios, queues)
    graph.check(["h1", "h2", "h3"])
    assert len(graph.begins) == count * queues * len(PAIRS)
    number = {int(id): place % count for place, id in enumerate(graph.begins)}
    ends = {int(id): place for place, id in enumerate(graph.ends)}
    for id, place in number.items():
        after = graph.operations[id].after
        assert [ends[before] % count for before in after] == (
            [place - depth] if place >= depth else []
        )


@given(count=st.integers(1, 60), share=st.floats(0, 1), queues=st.integers(1, 3))
def test_share_of_reads_is_exact_per_queue(count: int, share: float, queues: int) -> None:
    """In random order; the totals of flows, operations and bytes are known in advance."""
    ios = Ios(count, 4, 8192, share, 4096)
    graph = graph_of(ios, queues)
    reads = round(share * count)
    asks = graph.asks.reshape(-1, count)
    assert (asks == Asks.READ).sum(axis=1).tolist() == [reads] * (queues * len(PAIRS))
    sent = Counter(dict.fromkeys((Verb.WRITE, Verb.READ), 0))
    for flow in graph.flows:
        sent[flow.verb] += graph.bytes_of(flow)
    each = queues * len(PAIRS) * 8192
    assert sent[Verb.WRITE] == reads * each
    assert sent[Verb.READ] == (count - reads) * each
    assert graph.carries.sum() == count * each
    assert len(graph.flows) == ios.flows * queues * len(PAIRS)
    assert len(graph.operations) == ios.operations * queues * len(PAIRS)
    assert graph.total_bytes == ios.bytes * queues * len(PAIRS)


def test_each_queue_is_one_connection() -> None:
    """All flows of a queue share it, in both directions; two queues of a pair have two."""
    graph = graph_of(Ios(5, 1, 8192, 0.4, 0), queues=2)
    flows_of = Counter(flow.connection for flow in graph.flows)
    names = ["disk.h1-h3", "disk.h1-h3#2", "disk.h2-h3", "disk.h2-h3#2"]
    assert flows_of == dict.fromkeys(names, 6)
    assert len({flow.name for flow in graph.flows}) == len(graph.flows)


def test_queues_share_a_drive_per_direction() -> None:
    """4096 bytes at 32.768 Gb/s take a microsecond, at half of that two; nothing else waits."""
    ios = Ios(5, 1, 4096, 0.4, 0, read_rate_bps=32_768_000_000, write_rate_bps=16_384_000_000)
    graph = graph_of(ios, queues=2)
    assert list(graph.devices) == ["h3 read-media", "h3 write-media"]
    for flow in graph.flows:
        busy_ps = {"h3 read-media": 1_000_000, "h3 write-media": 2_000_000}.get(flow.device or "")
        own = slice(flow.operations.start, flow.operations.stop)
        assert set(graph.busy_ps[own]) == {busy_ps or 0}
        assert (flow.verb is Verb.COMPUTE) == (busy_ps is not None)


def test_another_seed_draws_another_order() -> None:
    """The same seed draws the same."""
    ios = Ios(100, 1, 4096, 0.5, 0)
    one, same, other = (storage("d", PAIRS[:1], 1, ios, Random(seed)).asks for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_totals_are_unknown_with_a_duration() -> None:
    """Commands have a time after which they do not start; the operations after a command have
    none."""
    ios = Ios(10, 1, 8192, 0.5, 0, start_ns=5, duration_ns=100)
    graph = together([graph_of(ios), storage("whole", PAIRS, 1, Ios(2, 1, 512, 1, 0), Random(1))])
    assert graph.cut_short == {"disk"}
    limited = np.flatnonzero(graph.not_after_ns)
    assert set(limited) == set(graph.begins[: 10 * len(PAIRS)])
    assert set(graph.not_after_ns[limited]) == {105}
