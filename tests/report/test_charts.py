"""Charts of large runs: readable, and no larger than those of small runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from emu.report.charts import Chart, chart_named, charts
from emu.report.charts.completion import MOST_STEPS
from emu.report.charts.rates import EXTREMES, MOST_ENTRIES
from emu.report.figure import Axis, Figure
from emu.report.palette import SERIES
from emu.report.run_view import RunFacts
from emu.spec.model import Spec
from tests.support.synthetic import record, run

HOSTS = 128


def many_flows(count: int) -> RunFacts:
    """A run of `count` entries in a fat tree, each with one flow. The last flow takes longest."""
    traffic = [
        {
            "name": f"f{n}",
            "pattern": "pair",
            "from": f"h{n % HOSTS + 1}",
            "to": f"h{(n + 1 + n // HOSTS) % HOSTS + 1}",
            "size": "1MB",
        }
        for n in range(count)
    ]
    spec = Spec.model_validate(
        {"name": "many", "topology": {"kind": "fat-tree", "k": 8}, "traffic": traffic}
    )
    ends = {flow.name: 100_000 + 100 * n for n, flow in enumerate(spec.workload().message_flows)}
    return run(record(spec, ends_ns=ends), spec)


def named(facts: RunFacts, name: str) -> Chart:
    chart = chart_named(name, [facts])
    assert chart is not None
    return chart


def labels(chart: Chart) -> list[str]:
    return re.findall(r">([^<>]+)</text>", chart.svg)


def test_more_flows_make_no_larger_charts() -> None:
    """Charts of 2000 flows have the rows of charts of 50 flows, and about as many strokes."""
    few, many = (charts([many_flows(count)]) for count in (50, 2000))
    assert [chart.title for chart in many] == [chart.title for chart in few]
    size = {chart.title: len(chart.svg) for chart in few}
    assert sum(len(chart.svg) for chart in many) < 2 * sum(size.values())
    for chart in many:
        assert chart.svg.count("<path") + chart.svg.count("<rect") < 3000


def test_rates_of_many_entries_show_all_and_the_extremes() -> None:
    chart = named(many_flows(MOST_ENTRIES + 10), "rates")
    rows = [label for label in labels(chart) if label.startswith(("all ", "f"))]
    last = MOST_ENTRIES + 9
    slowest = [f"f{last - n}" for n in range(EXTREMES)]
    fastest = [f"f{n}" for n in range(EXTREMES)]
    assert rows[0] == f"all {last + 1}"
    assert rows[1 : 1 + EXTREMES] == slowest
    assert sorted(rows[1 + EXTREMES :]) == fastest
    assert [entry.name for entry in chart.legend] == ["all flows", "the slowest", "the fastest"]


def test_a_distribution_has_a_limited_number_of_steps() -> None:
    """The first and the last flow stay in place."""
    facts = many_flows(5 * MOST_STEPS)
    (path,) = re.findall(
        r'<path d="([^"]*)" fill="none" stroke="var\(--series1\)" stroke-width="1.4"',
        named(facts, "completion").svg,
    )
    assert path.count("V") <= MOST_STEPS


def test_each_rack_is_a_row() -> None:
    """32 racks of 4 hosts have a row each. Runs with few flows have no such chart."""
    chart = named(many_flows(256), "racks")
    assert [label for label in labels(chart) if label.startswith("edge")] == [
        f"edge{n}" for n in range(1, 33)
    ]
    assert chart_named("racks", [many_flows(8)]) is None


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (Axis(0, 97), [0, 20, 40, 60, 80]),
        (Axis(0, 0.0031), [0, 0.001, 0.002, 0.003]),
        (Axis(0.9, 23, is_log=True), [1, 2, 5, 10, 20]),
        (Axis(0, 1, labels=[(0.5, "h1")]), [0.5]),
    ],
)
def test_ticks_are_round_values_within_the_axis(axis: Axis, expected: list[float]) -> None:
    assert [value for value, _ in axis.ticks(5)] == pytest.approx(expected)


def test_values_are_placed_by_their_axes() -> None:
    figure = Figure(["one", "two"], 400, 100, Axis(0, 10, "x"), Axis(0, 4, "y"))
    first, second = figure.plots
    assert first.at(0, 0) == pytest.approx((first.left, first.top + first.height))
    assert second.at(10, 4) == pytest.approx((second.left + second.width, second.top))
    assert second.left + second.width <= 400
    assert first.at(-5, 9) == pytest.approx((first.left, first.top))  # beyond the axes
    first.step_line(np.array([0, 5, 10]), np.array([1, 4]), SERIES[0])
    svg = figure.svg("two <plots>")
    assert 'aria-label="two &lt;plots&gt;"' in svg
    assert svg.count("<svg") == 1
    assert "var(--series1)" in svg


def test_bars_of_cables_stay_readable_with_many_hosts() -> None:
    """A hundred hosts deliver many times the rate of a cable, so the caption gives the sum."""
    few, many = named(many_flows(3), "load"), named(many_flows(500), "load")
    assert "delivered" in labels(few)
    assert "delivered" not in labels(many)
    delivered = re.search(r"Message bytes delivered: ([\d.]+) Tb/s by many\.", many.caption)
    assert delivered
    ticks = [float(label) for label in labels(many) if label.isdigit()]
    assert max(ticks) < 1_000 * float(delivered[1]) / 4
