"""Chakra's execution traces, which the test writes byte by byte, without a protobuf library."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.support.chakra_writer import (
    ALL_REDUCE,
    ALL_TO_ALL,
    COLL,
    COMP,
    GATHER,
    METADATA,
    RECV,
    SEND,
    node,
    write,
)
from traffic.graph import Operation, OperationGraph
from traffic.traces.chakra import read_chakra
from traffic.traces.groups import read_groups
from traffic.traces.play import graph_of
from traffic.traces.trace import Group, TraceError
from traffic.verb import Verb


def played(prefix: Path) -> OperationGraph:
    trace = read_chakra(prefix)
    return graph_of("t", trace, [f"h{rank + 1}" for rank in range(trace.ranks)])


def test_work_sends_and_receives_follow_dependencies(tmp_path: Path) -> None:
    """3 us of work, then a message of 4096 bytes, and work at the other end."""
    prefix = write(
        tmp_path,
        [
            node(1, COMP, us=3),
            node(2, SEND, {"comm_dst": 1, "comm_size": 4096, "comm_tag": 9}, after=[1]),
        ],
        [
            node(7, RECV, {"comm_src": 0, "comm_size": 4096, "comm_tag": 9}),
            node(8, COMP, us=5, ctrl=[7]),
        ],
    )
    graph = played(prefix)
    by_kind = {(o.verb, o.src, o.size_bytes, o.lasts_ns): o for o in graph.operations}
    work = by_kind[Verb.COMPUTE, "h1", 0, 3000]
    message = by_kind[Verb.WRITE, "h1", 4096, 0]
    last = by_kind[Verb.COMPUTE, "h2", 0, 5000]
    assert len(graph.operations) == 3
    assert (message.after, last.after) == ((work.id,), (message.id,))


def test_collective_expands_between_its_neighbours(tmp_path: Path) -> None:
    """All-reduce of 4 ranks, a ring: 2 * 3 messages of a quarter each, between work before and
    after."""
    prefix = write(
        tmp_path,
        *(
            [
                node(1, COMP, us=rank + 1),
                node(2, COLL, {"comm_type": ALL_REDUCE, "comm_size": 4096}, after=[1]),
                node(3, COMP, us=10, after=[2]),
            ]
            for rank in range(4)
        ),
    )
    graph = played(prefix)
    messages = [o for o in graph.operations if o.verb is Verb.WRITE]
    assert [o.size_bytes for o in messages] == [1024] * 24
    order = graph.dependencies()
    assert max(_messages_on(order, messages)) == 6
    for last in (o for o in graph.operations if o.lasts_ns == 10_000):
        assert {o.dst for o in messages if o.id in last.after} == {last.src}, "what it got"


def _messages_on(order: nx.DiGraph, messages: Sequence[Operation]) -> list[int]:
    """For each message, the number of messages on the longest chain that ends with it."""
    ids = {o.id for o in messages}
    longest: dict[int, int] = {}
    for id in nx.topological_sort(order):
        before = max((longest[earlier] for earlier in order.predecessors(id)), default=0)
        longest[id] = before + (id in ids)
    return [longest[id] for id in ids]


def collective(size: float | str | None) -> bytes:
    return node(1, COLL, {"comm_type": ALL_REDUCE, "comm_size": size})


@pytest.mark.parametrize(
    ("nodes", "error"),
    [
        ([node(1, COMP, after=[5])], r"node 1: waits for node 5, which is not in the file"),
        ([node(1, COMP, {"num_ops": 100})], r"node 1: has num_ops and no duration_micros"),
        ([node(1, SEND, {"comm_dst": 0})], r"node 1: rank 0 is not one of the other 0"),
        ([node(1, COLL, {"comm_size": 8})], r"node 1: has no attribute comm_type"),
        ([node(1, COLL, {"comm_type": GATHER, "comm_size": 8})], r"comm_type 3 is not known here"),
        (
            [node(1, COLL, {"comm_type": ALL_REDUCE, "comm_size": 8, "pg_name": "2"})],
            r"node 1: names process group 2 \(pg_name\), whose ranks are not listed",
        ),
        ([node(1, COMP, us=2**63)], r"node 1: lasts 9223372036854775808000 ns; the longest"),
        ([node(1, COMP), node(1, COMP)], r"node 1: occurs twice; give one another id"),
        ([collective(-5)], r"node 1: has -5 bytes; a collective has from 0 to 1099511627776"),
        ([collective(2**40 + 1)], r"node 1: has 1099511627777 bytes; a collective has from 0"),
        ([collective("abc")], r"node 1: attribute comm_size is 'abc'; write a whole number"),
        ([collective(4096.5)], r"node 1: attribute comm_size is 4096\.5; write a whole number"),
        ([collective(inf)], r"node 1: attribute comm_size is inf; write a whole number"),
        ([collective(None)], r"node 1: attribute comm_size is None; write a whole number"),
        ([], r"job\.\*\.et: have no nodes; give a rank something to do"),
        ([b"\x05abc"], r"job\.0\.et: the message at byte \d+ is truncated, or the file is not"),
    ],
)
def test_error_names_its_node(tmp_path: Path, nodes: list[bytes], error: str) -> None:
    """The problem, the place, and what to do."""
    with pytest.raises(TraceError, match=error):
        read_chakra(write(tmp_path, nodes))


def test_truncated_trace_is_read_or_refused(tmp_path: Path) -> None:
    """Cut between two nodes it is a shorter trace; elsewhere the error names the place of the
    cut."""
    file = tmp_path / "job.0.et"
    write(tmp_path, [node(1, COMP, us=3), node(2, COMP, us=4, after=[1])])
    whole = file.read_bytes()
    errors = set()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        try:
            read_chakra(tmp_path / "job")
        except TraceError as error:
            errors.add(re.sub(r"\d+ is", "N is", str(error)))
    assert errors == {
        "job.0.et: is empty; write the trace again",
        "job.0.et: the message at byte N is truncated, or the file is not an execution trace "
        "of Chakra; write the trace again",
        "job.*.et: have no nodes; give a rank something to do",
    }


@pytest.mark.parametrize("size", [4096, 4096.0, "4096"])
def test_integers_of_any_type_are_accepted(tmp_path: Path, size: float | str) -> None:
    """Some writers store attributes as doubles or text."""
    (step,) = read_chakra(write(tmp_path, [collective(size)])).steps
    assert step.size_bytes == 4096


@pytest.mark.parametrize("tag", ["x", None, 0.5])
def test_non_numeric_tag_is_refused(tmp_path: Path, tag: float | str | None) -> None:
    """A missing tag is 0, as in GOAL."""
    message = {"comm_dst": 1, "comm_size": 8}
    with pytest.raises(TraceError, match=r"node 1: attribute comm_tag is"):
        read_chakra(write(tmp_path, [node(1, SEND, {**message, "comm_tag": tag})], []))
    (step,) = read_chakra(write(tmp_path, [node(1, SEND, message)], [])).steps
    assert step.tag == 0


def test_large_collective_splits_into_rdma_messages(tmp_path: Path) -> None:
    """An all-reduce of 10 GB over two ranks: pieces of 5 GB, in three messages each."""
    one = [collective(10**10)]
    graph = played(write(tmp_path, one, one))
    assert graph.size_bytes.max() <= 2**31
    assert len(graph.operations) == 3 * 4
    assert graph.total_bytes == 2 * 10**10


def test_missing_rank_is_named(tmp_path: Path) -> None:
    """Ranks 0 and 2, but no 1."""
    write(tmp_path, [], [], [])
    (tmp_path / "job.1.et").unlink()
    with pytest.raises(TraceError, match=r"job\.1\.et: is missing"):
        read_chakra(tmp_path / "job")


def test_collective_with_missing_ranks_is_refused(tmp_path: Path) -> None:
    """The error names the rank that does not take part."""
    one = node(1, COLL, {"comm_type": ALL_REDUCE, "comm_size": 64})
    with pytest.raises(TraceError, match=r"rank 1 does not take part in this collective"):
        played(write(tmp_path, [one], []))


def grouped(*names: str, kind: int = ALL_REDUCE, first: int = 10) -> list[bytes]:
    """A rank's nodes: a collective of 4096 bytes in each of these groups, one after another."""
    return [
        node(
            first + place,
            COLL,
            {"comm_type": kind, "comm_size": 4096, "pg_name": name},
            after=[first + place - 1] if place else [],
        )
        for place, name in enumerate(names)
    ]


def pairs_of(graph: OperationGraph) -> set[tuple[str, str]]:
    return {(flow.src, flow.dst) for flow in graph.message_flows}


TENSOR_AND_DATA: dict[str, Any] = {"0": [0, 1], "1": [2, 3], "2": [0, 2], "3": {"ranks": [3, 1]}}
"""Two groups of neighbours, two across."""


def test_collectives_stay_in_their_process_groups(tmp_path: Path) -> None:
    """First neighbours, then across: ranks outside of a group do not take part, and each ring of
    two starts when both of its ranks have finished the previous one."""
    ranks = [grouped("0", "2"), grouped("0", "3"), grouped("1", "2"), grouped("1", "3")]
    groups = {
        name: Group(name, tuple(members["ranks"] if isinstance(members, dict) else members))
        for name, members in TENSOR_AND_DATA.items()
    }
    (tmp_path / "groups.json").write_text(json.dumps(TENSOR_AND_DATA))
    assert read_groups(tmp_path / "groups.json") == groups
    trace = read_chakra(write(tmp_path, *ranks), groups)
    graph = graph_of("t", trace, ["h1", "h2", "h3", "h4"])
    neighbours = {("h1", "h2"), ("h3", "h4")}
    across = {("h1", "h3"), ("h2", "h4")}
    assert pairs_of(graph) == {pair for a, b in neighbours | across for pair in ((a, b), (b, a))}
    assert graph.total_bytes == 4 * 2 * 4096
    order = graph.dependencies()
    for o in graph.operations:
        if tuple(sorted((o.src, o.dst))) in across:
            before = {graph.operations[id] for id in nx.ancestors(order, o.id)}
            assert any(tuple(sorted((b.src, b.dst))) in neighbours for b in before)


def test_groups_are_read_from_the_trace(tmp_path: Path) -> None:
    """From a metadata node, as PyTorch writes it; a group without ranks means all ranks."""
    groups = [{"pg_name": "0", "ranks": []}, {"pg_name": "1", "ranks": [2, 0], "pg_desc": "tp"}]
    metadata = node(1, METADATA, inputs=f"['{json.dumps(groups)}']")
    other = node(2, METADATA, inputs="['no groups at all']")
    all_of_them = grouped("0", kind=ALL_TO_ALL, first=20)
    graph = played(
        write(
            tmp_path,
            [metadata, *grouped("1"), *all_of_them],
            [metadata, *all_of_them],
            [metadata, other, *grouped("1"), *all_of_them],
        )
    )
    assert graph.bytes_between("h3", "h1") > graph.bytes_between("h2", "h1") > 0
    assert len(pairs_of(graph)) == 6


def test_group_of_one_sends_nothing(tmp_path: Path) -> None:
    """Its successors wait for its predecessors."""
    nodes = [
        node(1, COMP, us=3),
        node(2, COLL, {"comm_type": ALL_REDUCE, "comm_size": 64, "pg_name": "7"}, after=[1]),
        node(3, COMP, us=4, after=[2]),
    ]
    trace = read_chakra(write(tmp_path, nodes, [node(1, COMP, us=1)]), {"7": Group("7", (0,))})
    graph = graph_of("t", trace, ["h1", "h2"])
    work = {o.lasts_ns: o for o in graph.operations}
    assert work[4000].after == (work[3000].id,)
    assert not graph.message_flows


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ((0, 1), r"job\.2\.et: node 10: names process group 5, which has ranks 0, 1 but not"),
        ((0, 1, 2, 4), r"job\.0\.et: node 10: process group 5 has rank 4, but the trace has 4 ra"),
        ((0, 1, 2, 3), r"node 10: rank 3 does not take part in this collective; let all ranks"),
    ],
)
def test_missing_members_are_named(tmp_path: Path, members: tuple[int, ...], error: str) -> None:
    """Three of four ranks do a collective of group 5."""
    prefix = write(tmp_path, grouped("5"), grouped("5"), grouped("5"), [node(1, COMP, us=1)])
    with pytest.raises(TraceError, match=error):
        graph_of("t", read_chakra(prefix, {"5": Group("5", members)}), ["a", "b", "c", "d"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "[1, 2]",
        '{"0": 3}',
        '{"0": [0.5]}',
        '{"0": [Infinity]}',
        '{"0": [1, 1]}',
        '{"0": {}}',
    ],
)
def test_file_without_groups_is_refused(tmp_path: Path, text: str) -> None:
    """The error has its name and the expected content."""
    path = tmp_path / "groups.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=r"groups\.json: is not a file of process groups"):
        read_groups(path)
