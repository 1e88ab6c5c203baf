"""The sentence of a comparison about how congestion controls start."""

from __future__ import annotations

from dataclasses import replace

from emu.report.findings import findings
from emu.report.run_view import RunFacts
from emu.report.starts import how_each_starts
from emu.spec.model import changed
from tests.support.synthetic import four_fabrics


def run_with(run: RunFacts, name: str, **nic: object) -> RunFacts:
    return replace(run, name=name, spec=changed(run.spec, {"hosts": {"nic": nic}}, source="test"))


def test_a_comparison_explains_how_controls_start() -> None:
    """Controls that start alike are grouped, and a configured window is quoted."""
    run = four_fabrics()[1]
    runs = [
        run_with(run, "none", cc="none"),
        run_with(run, "roce-dcqcn", cc="dcqcn"),
        run_with(run, "dctcp", cc="dctcp"),
        run_with(run, "swift", cc="swift"),
        run_with(run, "tcp-like", cc="dctcp", dctcp={"initial_cwnd": 10}),
    ]
    (sentence,) = how_each_starts(runs)
    assert sentence == (
        "How flows begin: dcqcn (roce-dcqcn) starts at line rate; dctcp and swift start with a"
        " window of one BDP of the path; dctcp (tcp-like) starts with a window"
        " of 10 packets."
    )
    assert sentence in findings(runs)


def test_the_window_of_selective_repeat_is_reported() -> None:
    """This window keeps queues short. A configured window is not reported."""
    run = four_fabrics()[1]
    again = run_with(run, "again", recovery="selective-repeat")
    (sentence,) = how_each_starts([run, again])
    assert sentence == (
        "How flows begin: selective-repeat (again) starts with a window of one"
        " bandwidth-delay product, which does not grow."
    )
    assert not how_each_starts([run_with(run, "own", recovery="selective-repeat", window=64)])


def test_one_control_at_line_rate_needs_no_sentence() -> None:
    assert not how_each_starts(four_fabrics())


def test_all_controls_of_a_run_are_listed() -> None:
    """A control that starts in two ways is listed twice."""
    two = changed(
        four_fabrics()[1].spec,
        {
            "hosts": {
                "nic": {"cc": "dctcp"},
                "nodes": {
                    "h2": {"nic": {"cc": "swift"}},
                    "h3": {"nic": {"dctcp": {"initial_cwnd": 10}}},
                },
            }
        },
        source="test",
    )
    (sentence,) = how_each_starts([replace(four_fabrics()[1], name="mixed", spec=two)])
    assert sentence == (
        "How flows begin: dctcp (mixed) and swift (mixed) start with a window of one BDP of the"
        " path; dctcp (mixed) starts with a window of 10 packets."
    )
