"""GOAL's text: the graph of operations follows it, and errors are reported."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.graph import OperationGraph
from traffic.traces.goal import read_goal
from traffic.traces.play import graph_of
from traffic.traces.trace import TraceError
from traffic.verb import Verb

RELAY = """
num_ranks 3

rank 0 { // the first
l1: calc 100 cpu 0
l2: send 10b to 1 tag 5 cpu 0 nic 1
l2 requires l1
}
/* a comment
   of two lines */
rank 1 {
recv1: recv 10b from 0 tag 5
c: calc 40
s: send 20b to 2
c requires recv1
s irequires c
}
rank 2 {
r: recv 20b from 1
after: calc 7
after requires r
}
"""


def played(text: str) -> OperationGraph:
    trace = read_goal(text, "test.goal")
    return graph_of("t", trace, [f"h{rank + 1}" for rank in range(trace.ranks)])


def test_sends_are_messages_and_calcs_are_work() -> None:
    """A receive is no operation; its dependents wait for the message."""
    graph = played(RELAY)
    by_kind = {(o.verb, o.src, o.dst, o.size_bytes, o.lasts_ns): o for o in graph.operations}
    first = by_kind[Verb.COMPUTE, "h1", "h1", 0, 100]
    message = by_kind[Verb.WRITE, "h1", "h2", 10, 0]
    work = by_kind[Verb.COMPUTE, "h2", "h2", 0, 40]
    onward = by_kind[Verb.WRITE, "h2", "h3", 20, 0]
    last = by_kind[Verb.COMPUTE, "h3", "h3", 0, 7]
    assert len(by_kind) == len(graph.operations) == 5
    assert first.after == ()
    assert message.after == (first.id,)
    assert work.after == (message.id,)
    assert onward.after == (message.id,), "it begins with the work, not after it"
    assert last.after == (onward.id,)


def test_receive_also_waits_for_its_requirements() -> None:
    """Its dependents wait for the message and for the work before the receive."""
    graph = played(
        "num_ranks 2\n"
        "rank 0 {\nc: calc 9\nr: recv 1b from 1\ns: send 2b to 1\n"
        "r requires c\ns requires r\n}\n"
        "rank 1 {\nsend 1b to 0\nrecv 2b from 0\n}\n"
    )
    (answer,) = (o for o in graph.operations if o.size_bytes == 2)
    awaited = {(graph.operations[id].verb, graph.operations[id].src) for id in answer.after}
    assert awaited == {(Verb.WRITE, "h2"), (Verb.COMPUTE, "h1")}


def test_receive_starts_when_it_is_posted() -> None:
    """Two ranks post their receives, then send to each other: neither send waits for a message, but
    one waits for the work before its receive."""
    graph = played(
        "num_ranks 2\n"
        "rank 0 {\nl1: recv 8b from 1 tag 1\nl2: send 9b to 1 tag 1\nl2 irequires l1\n}\n"
        "rank 1 {\nc: calc 5\nl1: recv 9b from 0 tag 1\nl2: send 8b to 0 tag 1\n"
        "l1 requires c\nl2 irequires l1\n}\n"
    )
    after = {o.size_bytes: [graph.operations[id].verb for id in o.after] for o in graph.operations}
    assert after == {0: [], 9: [], 8: [Verb.COMPUTE]}


def test_largest_message_and_longest_work_are_accepted() -> None:
    """2 GiB, and 2^62 ps: the core's limits."""
    graph = played(
        "num_ranks 2\nrank 0 {\nsend 2147483648b to 1\ncalc 4611686018427387\n}\n"
        "rank 1 {\nrecv 2147483648b from 0\n}"
    )
    assert graph.size_bytes.max() == 2**31
    assert graph.lasts_ns.max() == 2**62 // 1000


def test_messages_of_one_tag_match_in_order() -> None:
    """The first send matches the first receive of the same tag, whatever lies between them."""
    graph = played(
        "num_ranks 2\n"
        "rank 0 {\nsend 1b to 1 tag 7\nsend 2b to 1 tag 8\nsend 3b to 1 tag 7\n}\n"
        "rank 1 {\nb: recv 2b from 0 tag 8\nx: recv 1b from 0 tag 7\ny: recv 3b from 0 tag 7\n"
        "c: calc 5\nc requires y\n}\n"
    )
    (work,) = (o for o in graph.operations if o.verb is Verb.COMPUTE)
    assert [graph.operations[id].size_bytes for id in work.after] == [3]


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Ranks, and messages between them in an order without cycles."""
    ranks = draw(st.integers(2, 6))
    pair = st.permutations(range(ranks)).map(lambda order: (order[0], order[1]))
    return ranks, draw(st.lists(pair, min_size=1, max_size=20))


@given(pipelines())
def test_graph_keeps_the_order_of_the_trace(
    drawn: tuple[int, list[tuple[int, int]]],
) -> None:
    """Every rank handles its messages one after another, and so do the operations."""
    ranks, messages = drawn
    graph = played(_one_after_another(ranks, messages))
    order = graph.dependencies()
    id_of = {o.size_bytes: o.id for o in graph.operations}
    for later, (src, dst) in enumerate(messages):
        for earlier in range(later):
            if messages[earlier][0] == src or messages[earlier][1] == src:
                assert nx.has_path(order, id_of[earlier + 1], id_of[later + 1]), (src, dst)


def _one_after_another(ranks: int, messages: Sequence[tuple[int, int]]) -> str:
    """GOAL's text in which each step of a rank requires the one before; message n has n bytes."""
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        before = None
        for size, (src, dst) in enumerate(messages, start=1):
            if rank not in (src, dst):
                continue
            what = f"send {size}b to {dst}" if rank == src else f"recv {size}b from {src}"
            lines.append(f"l{size}: {what}")
            if before is not None:
                lines.append(f"l{size} requires {before}")
            before = f"l{size}"
        lines.append("}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("rank 0 {\n}", r"test\.goal:1: comes before num_ranks"),
        ("num_ranks 2", r"test\.goal: has no steps"),
        ("", r"has no num_ranks"),
        ("num_ranks 2\nrank 2 {\n}", r"test\.goal:2: there is no rank 2 among 2"),
        ("num_ranks 2\nrank 0 {\nsned 1b to 1\n}", r"test\.goal:3: is neither a step nor"),
        ("num_ranks 2\nrank 0 {\nsend 1b from 1\n}", r":3: send goes with to"),
        ("num_ranks 2\nrank 0 {\nrecv 1b from -1\n}", r":3: has -1, which means any rank or"),
        ("num_ranks 2\nrank 0 {\nsend 1b to 0\n}", r":3: is a message of rank 0 to itself"),
        ("num_ranks 2\nrank 0 {\nsend 1b to 1\n}", r":3: rank 1 never receives this \(tag 0\)"),
        ("num_ranks 2\nrank 0 {\nrecv 1b from 1\n}", r":3: rank 1 never sends this"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}", r":4: a is a step of this rank already"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}", r":4: there is no step b"),
        ("num_ranks 1\nrank 0 {\na: calc 1\n", r"rank 0 has no end"),
        (
            "num_ranks 2\nrank 0 {\nsend 9b to 1\n}\nrank 1 {\nrecv 8b from 0\n}",
            r":6: has room for 8 bytes, and test\.goal:3 sends 9",
        ),
        ("num_ranks 1\nrank 0 {\ncalc 4611686018427388\n}", r":3: lasts 4611686018427388 ns; the"),
        (f"num_ranks 1\nrank 0 {{\ncalc {'9' * 23}\n}}", r":3: has a number of 23 digits; 18 are"),
        (f"num_ranks 2\nrank 0 {{\nsend 1b to {'1' * 5000}\n}}", r":3: has a number of 5000 dig"),
        ("num_ranks 2\nrank 0 {\nsend 2147483649b to 1\n}", r":3: has 2147483649 bytes; a send"),
        ("num_ranks 2\nrank 0 {\nrecv 4294967300b from 1\n}", r":3: has 4294967300 bytes; a rec"),
        ("num_ranks 2\nnum_ranks 1", r"test\.goal:2: has num_ranks a second time"),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}",
            r":3, test\.goal:4: these steps wait for each other in a cycle",
        ),
        (
            "num_ranks 2\nrank 0 {\nr: recv 1b from 1\ns: send 1b to 1\ns requires r\n}\n"
            "rank 1 {\nr: recv 1b from 0\ns: send 1b to 0\ns requires r\n}",
            r"wait for each other in a cycle",
        ),
    ],
)
def test_error_names_its_line(text: str, error: str) -> None:
    """The problem, the place, and what to do."""
    with pytest.raises(TraceError, match=error):
        played(text)
