"""Queue pair numbers of many flows at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emu.bindings.source_ports import queue_pair_columns, queue_pair_numbers
from traffic.flow_columns import FlowColumns
from traffic.graph import Flow
from traffic.verb import Verb


@st.composite
def flows(draw: st.DrawFn) -> tuple[Flow, ...]:
    """Flows among four hosts, some of which share a connection in either direction."""
    made: list[Flow] = []
    for number in range(draw(st.integers(1, 12))):
        shared = draw(st.sampled_from([None, *made]))
        hosts = [shared.src, shared.dst] if shared else ["h1", "h2", "h3", "h4"]
        src, dst, *_ = draw(st.permutations(hosts))
        name = shared.connection if shared else None
        made.append(Flow(f"f{number}", "t", src, dst, Verb.WRITE, range(0), shares=name))
    return tuple(made)


@given(flows())
def test_columns_have_the_numbers_of_connections(drawn: tuple[Flow, ...]) -> None:
    """At both ends of each flow."""
    numbers = queue_pair_numbers(drawn)
    at_src, at_dst = queue_pair_columns(FlowColumns(drawn), np.arange(len(drawn)))
    assert at_src.tolist() == [numbers[flow.connection][flow.src] for flow in drawn]
    assert at_dst.tolist() == [numbers[flow.connection][flow.dst] for flow in drawn]
