"""SimCCL's flow file: flows become messages, parents become dependencies, errors are explained."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from tests.support.simccl_writer import all_to_all, ring, written
from traffic.collectives.collective import Cut, collective
from traffic.graph import OperationGraph
from traffic.job import Job, Kind
from traffic.traces.play import graph_of
from traffic.traces.simccl import read_simccl
from traffic.traces.trace import TraceError

MIB = 2**20


def played(text: str) -> OperationGraph:
    trace = read_simccl(text, "flows.csv")
    return graph_of("t", trace, [f"h{rank + 1}" for rank in range(trace.ranks)])


def shape(graph: OperationGraph) -> nx.DiGraph:
    """The messages, each with its ends and its bytes, and which waits for which."""
    drawn = graph.dependencies()
    for operation in graph.operations:
        drawn.nodes[operation.id]["what"] = (operation.src, operation.dst, operation.size_bytes)
    return drawn


def test_an_all_to_all_has_the_flows_that_simccl_prints() -> None:
    """4 MiB among 8 ranks: 56 flows of 512 KiB, 3,670,016 bytes out of and into each rank."""
    graph = played(all_to_all(8, 4 * MIB))
    assert graph.size_bytes.tolist() == [524_288] * 56
    assert graph.total_bytes == 28 * MIB
    out, into = Counter[str](), Counter[str]()
    for flow in graph.message_flows:
        out[flow.src] += graph.bytes_of(flow)
        into[flow.dst] += graph.bytes_of(flow)
    assert {*out.values()} == {*into.values()} == {3_670_016}
    assert not len(graph.earlier), "nothing waits"


@pytest.mark.parametrize("kind", [Kind.ALL_GATHER, Kind.ALL_REDUCE])
def test_a_ring_is_the_graph_of_our_own_ring(kind: Kind) -> None:
    """The same messages, which wait for the same messages."""
    ranks, steps = 4, 6 if kind is Kind.ALL_REDUCE else 3
    hosts = tuple(f"h{rank + 1}" for rank in range(ranks))
    own = collective(Job("t", kind, "ring", hosts, MIB), cut=Cut())
    theirs = played(written(*ring(ranks, MIB, steps)))
    same = nx.algorithms.isomorphism.categorical_node_match("what", None)
    assert nx.is_isomorphic(shape(theirs), shape(own), node_match=same)


def test_a_rank_goes_through_collectives_in_the_order_of_the_file() -> None:
    """All messages of the second wait, at their own rank, for all of the first."""
    first = ring(3, 300, 2, name="TP_0")
    second = ring(3, 3000, 2, name="TP_1", first=100)
    graph = played(written(*first, *second))
    waits = nx.transitive_closure_dag(graph.dependencies())
    for later in graph.operations:
        for earlier in graph.operations:
            if (later.size_bytes, earlier.size_bytes) == (1000, 100):
                ends = {earlier.src, earlier.dst}
                assert waits.has_edge(earlier.id, later.id) or later.src not in ends


def test_flows_may_come_before_their_parents_in_the_file() -> None:
    """SimCCL writes rank by rank, so a parent may be in a later line."""
    graph = played(
        written(
            "c,0,1,1,0,0,7,0,1,10,0,1,RING,8,2",
            "c,0,1,1,0,0,8,2,0,20,0,1,RING,,1",
        )
    )
    sizes = graph.size_bytes
    assert [(sizes[a], sizes[b]) for a, b in zip(graph.earlier, graph.later, strict=True)] == [
        (20, 10)
    ]


def test_an_older_file_without_algorithm_and_protocol_is_read() -> None:
    """Columns are found by their names."""
    lines = all_to_all(4, 4096).splitlines()
    older = [",".join(np.delete(line.split(","), [3, 4])) for line in lines]
    assert played("\n".join(older)) == played(all_to_all(4, 4096))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", r"flows.csv:1: has no column collective, flow_id, src"),
        ("a,b\n1,2\n", r"flows.csv:1: has no column collective"),
        (written(), r"flows.csv: has no flows"),
        (written("c,0,1,1,0,0,x,0,1,10,0,1,PTP,,"), r"flows.csv:2: flow_id has no whole number"),
        (written("c,0,1,1,0,0,1,0,1,-1,0,1,PTP,,"), r"flows.csv:2: flow_size -1 is out of range"),
        (written("c,0,1,1,0,0,1,0,1"), r"flows.csv:2: has fewer cells"),
        (written("c,0,1,1,0,0,1,2,2,10,0,1,PTP,,"), r"flows.csv:2: is a flow of rank 2 to itself"),
        (written("c,0,1,1,0,0,1,0,1,10,0,1,PTP,5,"), r"flows.csv:2: waits for flow 5, which is"),
        (written("c,0,1,4,0,0,1,0,8,10,0,1,NVLS,,"), r"flows.csv:2: is NVLS.*AS_NVLS_ENABLE=0"),
        (
            written("c,0,1,1,0,0,1,0,1,10,0,1,PTP,,", "c,0,1,1,0,0,1,1,0,10,0,1,PTP,,"),
            r"flows.csv:3: flow_id 1 occurs twice",
        ),
        (
            written("c,0,1,1,0,0,1,0,1,10,0,1,PTP,,", "c,0,1,1,0,0,2,2,0,10,0,1,PTP,1,"),
            r"flows.csv:3: rank 2 would send on flow 1, which goes to rank 1 \(flows.csv:2\)",
        ),
        (
            written("c,0,1,1,0,0,1,0,1,10,0,1,PTP,2,", "c,0,1,1,0,0,2,1,0,10,0,1,PTP,1,"),
            r"wait for each other in a cycle",
        ),
    ],
)
def test_mistakes_are_explained(text: str, error: str) -> None:
    with pytest.raises(TraceError, match=error):
        played(text)
