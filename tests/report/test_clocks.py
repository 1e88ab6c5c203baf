"""The emulator's own error: both clocks side by side, for one seed and for several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

import pytest

from emu.report.clocks import BothClocks, Seeds, clocks_document, clocks_table
from emu.report.facts import RunFacts
from tests.report.synthetic import INCONCLUSIVE, record, run, spec

VIRTUAL_NS = 600_000


def _run(last_ns: int | None, cnp: int = 40) -> RunFacts:
    scenario = spec()
    ends: Mapping[str, int | None] = {f"incast.h{n}-h1": last_ns for n in range(2, 9)}
    recording = record(scenario, ends_ns={**ends, "victim": 200_000}, totals={"cnp": cnp})
    return run(recording, scenario)


def _late(facts: RunFacts) -> RunFacts:
    return run(replace(facts.recording, fidelity=INCONCLUSIVE), facts.spec)


def _seeds(*real_ns: int | None) -> Seeds:
    return Seeds("dcqcn", [BothClocks(_run(real), _run(VIRTUAL_NS)) for real in real_ns])


def _figure(seeds: Seeds, name: str) -> dict[str, object]:
    figures = clocks_document([seeds])["runs"]["dcqcn"]["figures"]
    return next(found for found in figures if found["figure"] == name)


def test_one_seed_is_told_as_the_difference_of_its_two_runs() -> None:
    table = clocks_table(_seeds(630_000))

    row = next(cells for cells in table.rows if cells[0].text == "last completion")
    assert [cell.text for cell in row] == ["last completion", "630 us", "600 us", "+5.0%"]


def test_of_several_seeds_one_that_ends_otherwise_does_not_move_the_median() -> None:
    seeds = _seeds(606_000, 612_000, 600_000, 900_000, 594_000)

    figure = _figure(seeds, "last completion")
    assert figure["relative"] == pytest.approx(median([0.01, 0.02, 0.0, 0.5, -0.01]))
    assert figure["middle_half"] == pytest.approx((0.0, 0.02))


def test_a_seed_for_which_the_machine_was_too_slow_is_left_out_and_said() -> None:
    slow = BothClocks(_late(_run(900_000)), _run(VIRTUAL_NS))
    seeds = Seeds("dcqcn", [*_seeds(606_000, 606_000).runs, slow])

    assert _figure(seeds, "last completion")["relative"] == pytest.approx(0.01)
    assert "1 of 3 seeds" in clocks_table(seeds).note


def test_a_machine_that_never_kept_up_gives_no_figures() -> None:
    seeds = Seeds("dcqcn", [BothClocks(_late(_run(900_000)), _run(VIRTUAL_NS))])

    table = clocks_table(seeds)
    assert table.rows == ()
    assert "did not keep up" in table.note


def test_a_flow_that_never_finished_is_no_completion() -> None:
    figure = _figure(_seeds(None, 606_000), "last completion")

    assert figure["real"] == (None, 606_000)
    assert figure["relative"] == pytest.approx(0.01)
