"""Chakra's execution traces, written here byte by byte, without a protobuf library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import networkx as nx
import pytest

from traffic.graph import Operation, OperationGraph, Verb
from traffic.traces.chakra import read_chakra
from traffic.traces.play import graph_of
from traffic.traces.trace import TraceError

COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, GATHER = 0, 3


def varint(value: int) -> bytes:
    head, tail = value & 0x7F, value >> 7
    return bytes([head | 0x80]) + varint(tail) if tail else bytes([head])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(
    id: int,
    kind: int,
    attributes: Mapping[str, int | str] | None = None,
    *,
    after: Sequence[int] = (),
    ctrl: Sequence[int] = (),
    us: int = 0,
) -> bytes:
    """As ASTRA-sim's generators write them: int64_val (9) and string_val (29), packed deps."""
    message = field(1, id) + field(2, b"a name") + field(3, kind)
    message += field(4, b"".join(map(varint, ctrl))) + field(5, b"".join(map(varint, after)))
    message += field(7, us)
    for name, value in (attributes or {}).items():
        told = field(29, value.encode()) if isinstance(value, str) else field(9, value)
        message += field(10, field(1, name.encode()) + told)
    return varint(len(message)) + message


def write(folder: Path, *ranks: Sequence[bytes]) -> Path:
    metadata = field(1, b"0.0.4")
    for rank, nodes in enumerate(ranks):
        content = varint(len(metadata)) + metadata + b"".join(nodes)
        (folder / f"job.{rank}.et").write_bytes(content)
    return folder / "job"


def played(prefix: Path) -> OperationGraph:
    trace = read_chakra(prefix)
    return graph_of("t", trace, [f"h{rank + 1}" for rank in range(trace.ranks)])


def test_work_sends_and_receives_depend_on_each_other_as_told(tmp_path: Path) -> None:
    """3 us of work, a message of 4096 bytes when it is done, and work at the other end."""
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
    told = {(o.verb, o.src, o.size_bytes, o.lasts_ns): o for o in graph.operations}
    work = told[Verb.COMPUTE, "h1", 0, 3000]
    message = told[Verb.WRITE, "h1", 4096, 0]
    last = told[Verb.COMPUTE, "h2", 0, 5000]
    assert len(graph.operations) == 3
    assert (message.after, last.after) == ((work.id,), (message.id,))


def test_a_collective_is_expanded_between_what_comes_before_and_after(tmp_path: Path) -> None:
    """All-reduce of 4 ranks, a ring: 2 * 3 messages of a quarter each; work before and after."""
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
    """For each message the messages on the longest chain that ends with it."""
    ids = {o.id for o in messages}
    longest: dict[int, int] = {}
    for id in nx.topological_sort(order):
        before = max((longest[earlier] for earlier in order.predecessors(id)), default=0)
        longest[id] = before + (id in ids)
    return [longest[id] for id in ids]


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
            r"of a process group",
        ),
        ([b"\x05abc"], r"job\.0\.et: is no execution trace of Chakra"),
    ],
)
def test_what_is_wrong_is_told_with_its_node(
    tmp_path: Path, nodes: list[bytes], error: str
) -> None:
    """What, where, and what to do."""
    with pytest.raises(TraceError, match=error):
        read_chakra(write(tmp_path, nodes))


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    """Ranks 0 and 2, but no 1."""
    write(tmp_path, [], [], [])
    (tmp_path / "job.1.et").unlink()
    with pytest.raises(TraceError, match=r"job\.1\.et: is not there"):
        read_chakra(tmp_path / "job")


def test_a_collective_without_all_ranks_is_told(tmp_path: Path) -> None:
    """The one that takes no part is named."""
    one = node(1, COLL, {"comm_type": ALL_REDUCE, "comm_size": 64})
    with pytest.raises(TraceError, match=r"rank 1 takes no part in this collective"):
        played(write(tmp_path, [one], []))
