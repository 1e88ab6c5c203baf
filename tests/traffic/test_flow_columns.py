"""Flows as columns of numbers."""

from __future__ import annotations

from traffic.flow_columns import FlowColumns
from traffic.graph import Flow
from traffic.verb import Verb

FLOWS = (
    Flow("a", "t", "h1", "h2", Verb.WRITE, range(2)),
    Flow("b", "t", "h2", "h3", Verb.READ, range(2, 3), shares="c"),
    Flow("c", "u", "h3", "h2", Verb.SEND, range(3, 6)),
)


def test_hosts_are_numbered() -> None:
    """The columns name them by their places."""
    columns = FlowColumns(FLOWS)
    assert [columns.hosts[place] for place in columns.src] == ["h1", "h2", "h3"]
    assert [columns.hosts[place] for place in columns.dst] == ["h2", "h3", "h2"]


def test_bytes_of_a_read_come_from_the_other_end() -> None:
    """As `Flow.bytes_from` has it."""
    columns = FlowColumns(FLOWS)
    for place, flow in enumerate(FLOWS):
        assert columns.hosts[columns.bytes_from[place]] == flow.bytes_from
        assert columns.hosts[columns.bytes_to[place]] == flow.bytes_to


def test_a_shared_connection_has_one_number() -> None:
    """The flow `b` shares that of `c`."""
    first, second, third = FlowColumns(FLOWS).connection.tolist()
    assert first != second
    assert second == third


def test_operations_are_counted() -> None:
    """And begin where those before end."""
    columns = FlowColumns(FLOWS)
    assert columns.operations.tolist() == [2, 1, 3]
    assert columns.first_operation.tolist() == [0, 2, 3]


def test_verbs_and_entries_are_asked_once_each() -> None:
    """The answer is spread over the flows."""
    columns = FlowColumns(FLOWS)
    assert columns.where(lambda verb: verb is Verb.READ).tolist() == [False, True, False]
    assert columns.of_traffic(lambda name: name == "u").tolist() == [False, False, True]


def test_no_flows() -> None:
    """A workload of nothing."""
    columns = FlowColumns(())
    assert columns.hosts == ()
    assert len(columns.bytes_from) == len(columns.connection) == 0
