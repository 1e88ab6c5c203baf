"""The table of operations: rows, dependencies, and joined tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from traffic.collectives.collective import collective
from traffic.graph import Operation, OperationGraph, together
from traffic.job import Job, Kind
from traffic.patterns import Messages, incast, pair
from traffic.verb import Verb

CHAIN = pair("p", ["h1"], ["h2"], Messages(Verb.SEND, 10, count=3, start_ns=5, priority=2))


def test_row_is_an_operation() -> None:
    """With all attributes of its flow."""
    assert CHAIN.operations[1] == Operation(1, Verb.SEND, "h1", "h2", 10, "p", 5, (0,), 2)
    assert CHAIN.operations[-1].after == (1,)
    assert [o.id for o in CHAIN.operations[1:]] == [1, 2]
    assert len(CHAIN.operations) == len(list(CHAIN.operations)) == 3


@pytest.mark.parametrize("id", [3, -4])
def test_missing_row_raises_index_error(id: int) -> None:
    """As with any sequence."""
    with pytest.raises(IndexError):
        CHAIN.operations[id]


def test_dependents_invert_the_dependencies() -> None:
    """As the core needs them: a row's dependents are a slice."""
    graph = collective(Job("sum", Kind.ALL_REDUCE, "ring", ("h1", "h2", "h3"), 300))
    first, ids = graph.dependents()
    assert len(first) == len(graph.operations) + 1
    for operation in graph.operations:
        slice_ = ids[first[operation.id] : first[operation.id + 1]].tolist()
        assert slice_ == [o.id for o in graph.operations if operation.id in o.after]


def test_flow_numbers_cover_all_rows_at_once() -> None:
    """The number of the flow of each operation."""
    graph = incast("i", ["h2", "h3"], "h1", Messages(Verb.WRITE, 10, count=2))
    assert graph.flow_of.tolist() == [0, 0, 1, 1]
    assert graph.bytes_of(graph.flows[1]) == graph.bytes_between("h3", "h1") == 20


def test_empty_workload_is_valid() -> None:
    """No flows, no rows, no dependents."""
    empty = together([])
    assert empty == OperationGraph()
    assert (len(empty.operations), empty.total_bytes) == (0, 0)
    first, ids = empty.dependents()
    assert (first.tolist(), ids.tolist()) == ([0], [])


def test_workloads_differ_by_any_column() -> None:
    """They are equal if all visible attributes are."""
    other = pair("p", ["h1"], ["h2"], Messages(Verb.SEND, 10, count=3, start_ns=6, priority=2))
    assert together([CHAIN]) == CHAIN
    assert other != CHAIN
    assert CHAIN != "a workload"


def cycle_of(count: int) -> OperationGraph:
    """Operations of one flow that form a dependency cycle, and one that waits for them."""
    chain = pair("p", ["h1"], ["h2"], Messages(Verb.SEND, 10, count=count + 1))
    first, last = np.array([0]), np.array([count - 1])
    return replace(
        chain,
        earlier=np.concatenate([last, chain.earlier]),
        later=np.concatenate([first, chain.later]),
    )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_cycle_is_reported_by_its_operations(count: int) -> None:
    """Those of the cycle, and not those that wait for it."""
    with pytest.raises(ValueError, match="wait for each other in a cycle") as error:
        cycle_of(count).check(["h1", "h2"])
    numbers = str(error.value).removeprefix("operations ").split(" wait")[0].split(" > ")
    assert sorted(map(int, numbers)) == list(range(count))


def test_missing_host_is_reported_with_its_flow() -> None:
    """Before any operation is made."""
    with pytest.raises(ValueError, match=r"^flow p needs h2, and there is no such host$"):
        CHAIN.check(["h1"])


def test_valid_workload_passes() -> None:
    """Chains, and collectives with their many dependencies."""
    CHAIN.check({"h1": 1, "h2": 2})
    ranks = ("h1", "h2", "h3", "h4", "h5")
    for algorithm in ("ring", "double-tree", "halving-doubling"):
        collective(Job("sum", Kind.ALL_REDUCE, algorithm, ranks, 300)).check(ranks)
