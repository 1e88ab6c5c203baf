"""The core's rates against a reference in plain Python with exact fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.flow_model.network import Network
from emu.flow_model.routes import Column, Shares
from emu.flow_model.shapes import Shape, Shapes
from emu.flow_model.simulation import Simulation
from tests.flow_model.max_min_model import Route, max_min_rates, rates_beside_reverse, short
from traffic.graph import Flow, OperationGraph
from traffic.verb import Verb

BYTES = 1e6


@dataclass(frozen=True)
class Case:
    """Links, and messages of equal size, each on a route of its own."""

    capacity: list[Fraction]
    routes: list[Route]
    reverse: list[Route]
    """What each byte of a message sends the other way."""
    starts_ns: list[int]


@st.composite
def cases(draw: st.DrawFn, *, acknowledged: bool) -> Case:
    """One to eight links, and one to twelve messages over some of them. Where these are
    acknowledged, links are alike enough that acknowledgements are the smaller part everywhere."""
    rate = st.integers(100 if acknowledged else 1, 400).map(Fraction)
    capacity = draw(st.lists(rate, min_size=1, max_size=8))
    links = st.integers(0, len(capacity) - 1)
    share = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 4)])
    ways = st.dictionaries(links, share, min_size=1)
    routes: list[Route] = [*draw(st.lists(ways, min_size=1, max_size=12))]
    starts = draw(st.lists(st.integers(0, 30_000), min_size=len(routes), max_size=len(routes)))
    reverse: list[Route] = [{} for _ in routes]
    if acknowledged:
        small = st.sampled_from([Fraction(1, 2000), Fraction(1, 500)])
        back = st.dictionaries(links, small)
        reverse = [*draw(st.lists(back, min_size=len(routes), max_size=len(routes)))]
    return Case(capacity, routes, reverse, starts)


def entries_of(routes: list[Route]) -> tuple[Column, Column, Shares]:
    """First entry of each route, links, shares."""
    return (
        np.cumsum([0, *map(len, routes)]),
        np.array([link for route in routes for link in sorted(route)], np.int64),
        np.array([float(route[link]) for route in routes for link in sorted(route)]),
    )


def network_of(case: Case) -> Network:
    """Each flow has a route of its own."""
    none = np.zeros(0, np.int64)
    first, link, share = entries_of(case.routes)
    reverse_first, reverse_link, reverse_share = entries_of(case.reverse)
    return Network(
        capacity=np.array([float(own) for own in case.capacity]) / 1e6,
        first=first,
        link=link,
        share=share,
        reverse_first=reverse_first,
        reverse_link=reverse_link,
        reverse_share=reverse_share,
        route_of_flow=np.arange(len(case.routes)),
        way_of_flow=none,
        ways=(),
        ports=(),
        link_of_port=none,
        near=none,
        far=none,
        nodes=(),
    )


def workload_of(case: Case) -> OperationGraph:
    """One message of each flow."""
    return OperationGraph(
        flows=tuple(
            Flow(f"f{n}", "t", f"a{n}", f"b{n}", Verb.WRITE, range(n, n + 1))
            for n in range(len(case.routes))
        ),
        size_bytes=np.full(len(case.routes), int(BYTES)),
        not_before_ns=np.array(case.starts_ns, np.int64),
    )


def ends_ps(case: Case) -> list[int]:
    """When each message ends."""
    shape = Shape(BYTES, int(BYTES), 0, 0, 0, 0, 0, 0)
    shapes = Shapes((shape,), np.zeros(len(case.routes), np.int64))
    with Simulation(workload_of(case), network_of(case), shapes, tolerance=0) as simulation:
        list(simulation.run(10**15))
        return [int(end) for end in simulation.records["delivered_ps"]]


def expected_ends(case: Case) -> list[float]:
    """The same with exact rates, worked out anew whenever a message starts or ends."""
    scaled = [own / 10**6 for own in case.capacity]
    waiting = sorted(range(len(case.routes)), key=case.starts_ns.__getitem__)
    left: dict[int, Fraction] = {}
    ends, now = [0.0] * len(case.routes), Fraction(0)
    while left or waiting:
        numbers = list(left)
        rates = rates_beside_reverse(
            scaled, [case.routes[n] for n in numbers], [case.reverse[n] for n in numbers]
        )
        next_end = [now + left[n] / rate for n, rate in zip(numbers, rates, strict=True)]
        next_start = [Fraction(case.starts_ns[n] * 1000) for n in waiting[:1]]
        then = min(next_end + next_start)
        for number, rate, end in zip(numbers, rates, next_end, strict=True):
            left[number] = short(left[number] - (then - now) * rate)
            if end == then:
                del left[number]
                ends[number] = float(then)
        now = short(then)
        while waiting and case.starts_ns[waiting[0]] * 1000 <= now:
            left[waiting.pop(0)] = Fraction(int(BYTES))
    return ends


@given(cases(acknowledged=False))
@settings(max_examples=400, deadline=None)
def test_rates_are_max_min_fair(case: Case) -> None:
    """At every moment of a run: each message ends when the reference says."""
    assert ends_ps(case) == pytest.approx(expected_ends(case), rel=1e-9)


@given(cases(acknowledged=True))
@settings(max_examples=150, deadline=None)
def test_rates_are_max_min_fair_beside_acknowledgements(case: Case) -> None:
    """Streams share what the acknowledgements of others leave of their links."""
    assert ends_ps(case) == pytest.approx(expected_ends(case), rel=1e-8)


def test_the_reference_knows_the_textbook_example() -> None:
    """A long flow over two links of 1 and 2, with a short one on each."""
    one = Fraction(1)
    routes: list[Route] = [{0: one, 1: one}, {0: one}, {1: one}]
    assert max_min_rates([Fraction(1), Fraction(2)], routes) == [
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(3, 2),
    ]
