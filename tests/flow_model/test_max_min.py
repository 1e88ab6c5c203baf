"""The core's rates against a reference in plain Python with exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.flow_model.network import Network
from emu.flow_model.shapes import Shape, Shapes
from emu.flow_model.simulation import Simulation
from tests.flow_model.max_min_model import Route, max_min_rates
from traffic.graph import Flow, OperationGraph, Verb

BYTES = 1e6


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Fraction], list[Route]]:
    """One to eight links, and one to twelve routes over some of them."""
    capacity = draw(st.lists(st.integers(1, 400).map(Fraction), min_size=1, max_size=8))
    share = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 4)])
    route = st.dictionaries(st.integers(0, len(capacity) - 1), share, min_size=1)
    return capacity, draw(st.lists(route, min_size=1, max_size=12))


def network_of(capacity: list[Fraction], routes: list[Route]) -> Network:
    """Each flow has a route of its own."""
    none = np.zeros(0, np.int64)
    return Network(
        capacity=np.array([float(own) for own in capacity]) / 1e6,
        first=np.cumsum([0, *map(len, routes)]),
        link=np.array([link for route in routes for link in sorted(route)], np.int64),
        share=np.array([float(route[link]) for route in routes for link in sorted(route)]),
        route_of_flow=np.arange(len(routes)),
        way_of_flow=none,
        ways=(),
        ports=(),
        link_of_port=none,
        near=none,
        far=none,
        nodes=(),
    )


def workload_of(flows: int) -> OperationGraph:
    """One message of each flow, all at once."""
    return OperationGraph(
        flows=tuple(
            Flow(f"f{n}", "t", f"a{n}", f"b{n}", Verb.WRITE, range(n, n + 1)) for n in range(flows)
        ),
        size_bytes=np.full(flows, int(BYTES)),
    )


def ends_ps(capacity: list[Fraction], routes: list[Route]) -> list[int]:
    """When each message ends."""
    shape = Shape(BYTES, int(BYTES), 0, 0, 0, 0, 0, 0)
    shapes = Shapes((shape,), np.zeros(len(routes), np.int64))
    network, graph = network_of(capacity, routes), workload_of(len(routes))
    with Simulation(graph, network, shapes, tolerance=0) as simulation:
        list(simulation.run(10**15))
        return [int(end) for end in simulation.records["delivered_ps"]]


def expected_ends(capacity: list[Fraction], routes: list[Route]) -> list[float]:
    """The same with exact rates, worked out anew whenever a message ends."""
    scaled = [own / 10**6 for own in capacity]
    left = dict.fromkeys(range(len(routes)), Fraction(int(BYTES)))
    ends, now = [0.0] * len(routes), Fraction(0)
    while left:
        numbers = list(left)
        rates = max_min_rates(scaled, [routes[number] for number in numbers])
        step = min(left[number] / rate for number, rate in zip(numbers, rates, strict=True))
        now += step
        for number, rate in zip(numbers, rates, strict=True):
            left[number] -= step * rate
            if left[number] == 0:
                del left[number]
                ends[number] = float(now)
    return ends


@given(networks())
@settings(max_examples=300, deadline=None)
def test_rates_are_max_min_fair(drawn: tuple[list[Fraction], list[Route]]) -> None:
    """At every moment of a run: each message ends when the reference says."""
    assert ends_ps(*drawn) == pytest.approx(expected_ends(*drawn), rel=1e-9)


def test_the_reference_knows_the_textbook_example() -> None:
    """A long flow over two links of 1 and 2, with a short one on each."""
    one = Fraction(1)
    routes: list[Route] = [{0: one, 1: one}, {0: one}, {1: one}]
    assert max_min_rates([Fraction(1), Fraction(2)], routes) == [
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(3, 2),
    ]
