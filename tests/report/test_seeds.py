"""`emu compare --seeds`: intervals of each variant, and which differences are more than chance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from emu.cli.compare import command
from emu.errors import UsageError
from emu.explain.results_schema import schema
from emu.measure.bootstrap import interval_of
from emu.report.run_view import RunFacts
from emu.report.seeds import (
    NO_DIFFERENCE,
    OverSeeds,
    SeedRun,
    Variant,
    seeds_document,
    seeds_tables,
)
from emu.report.seeds_entries import PairOverSeedsEntry
from tests.support.synthetic import INCONCLUSIVE, record, run, spec

ROOT = Path(__file__).parents[2]
LAST = "last completion"


def facts(last_ns: int | None) -> RunFacts:
    scenario = spec()
    ends: Mapping[str, int | None] = {f"incast.h{n}-h1": last_ns for n in range(2, 9)}
    return run(record(scenario, ends_ns={**ends, "victim": 200_000}), scenario)


def variant(name: str, *last_ns: int | None) -> Variant:
    return Variant(
        name, {seed: SeedRun.of(facts(last)) for seed, last in enumerate(last_ns, start=7)}
    )


def over(*variants: Variant) -> OverSeeds:
    return OverSeeds(variants, list(variants[0].runs))


def difference(own: OverSeeds, figure: str = LAST) -> PairOverSeedsEntry:
    found = seeds_document(own)["differences"]
    return next(one for one in found if one["figure"] == figure)


def test_the_interval_is_the_bootstrap_of_the_seeds() -> None:
    own = seeds_document(over(variant("pfc", 600_000, 610_000, 640_000, 605_000, 600_500)))
    expected = interval_of([600_000, 610_000, 640_000, 605_000, 600_500])
    assert own["variants"]["pfc"][LAST] == {
        "mean": expected.mean,
        "low": expected.low,
        "high": expected.high,
        "runs": 5,
        "unit": "ns",
    }
    assert (own["resamples"], own["level"]) == (9_999, 0.95)


def test_differences_are_paired_by_seed() -> None:
    """The seed moves both variants by far more than they differ."""
    slow = (600_000, 900_000, 700_000, 1_200_000, 650_000)
    one, other = variant("pfc", *slow), variant("ib", *(last - 5_000 for last in slow))
    found = difference(over(one, other))
    assert found["differs"]
    assert (found["low"], found["mean"], found["high"]) == (-5_000, -5_000, -5_000)


def test_chance_is_no_difference() -> None:
    one = variant("pfc", 600_000, 601_000, 599_000, 600_500, 600_200)
    other = variant("ib", 601_000, 600_000, 600_000, 599_500, 600_300)
    own = over(one, other)
    assert not difference(own)["differs"]
    _, differences, _ = seeds_tables(own)
    row = next(cells for cells in differences.rows if cells[0].text == LAST)
    assert row[1].text == NO_DIFFERENCE


def test_few_seeds_show_no_difference() -> None:
    own = over(variant("pfc", 600_000, 600_000), variant("ib", 500_000, 500_000))
    assert not difference(own)["differs"]
    _, differences, _ = seeds_tables(own)
    assert "it takes 5 seeds" in differences.note


def test_seeds_without_a_result_are_left_out_of_both() -> None:
    """A run that the machine could not keep up with, and one whose flows did not finish."""
    one, other = variant("pfc", *[600_000] * 7), variant("ib", *[500_000] * 6, None)
    late = facts(600_000)
    late = run(replace(late.recording, fidelity=INCONCLUSIVE), late.spec)
    one = Variant("pfc", {**one.runs, 7: SeedRun.of(late)})
    found = difference(over(one, other))
    assert (found["runs"], found["differs"]) == (5, True)
    assert seeds_document(over(one, other))["variants"]["pfc"][LAST]["runs"] == 6


def test_compare_has_intervals_over_seeds(tmp_path: Path) -> None:
    """In table, page and JSON; each seed's run has a folder."""
    words = [str(ROOT / "topologies/incast.emu.yml"), "--clock", "virtual", "--seeds", "5"]
    words += ["--quiet", "--json", "--out", str(tmp_path)]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document == json.loads((tmp_path / "comparison.json").read_text())
    jsonschema.validate(document, schema("comparison"))
    found = document["over_seeds"]
    assert found["seeds"] == [7, 8, 9, 10, 11]
    lasts = [
        max(flow["end_ns"] for flow in json.loads(file.read_text())["flows"])
        for file in sorted(tmp_path.glob("roce-dcqcn/seed-*/summary.json"))
    ]
    assert found["variants"]["roce-dcqcn"][LAST]["mean"] == pytest.approx(sum(lasts) / 5)
    assert document["runs"]["roce-dcqcn"]["seed"] == 7
    for text in (result.stderr, (tmp_path / "comparison.html").read_text()):
        assert "Means over 5 seeds, with their intervals" in text
        assert "Differences from roce-lossy, seed by seed" in text
        assert "passed in 5 of 5" in text


def test_one_seed_is_compared_as_before(tmp_path: Path) -> None:
    words = [str(ROOT / "topologies/incast.emu.yml"), "--clock", "virtual", "--json", "-q"]
    document = json.loads(CliRunner().invoke(command, [*words, "--out", str(tmp_path)]).stdout)
    assert "over_seeds" not in document
    assert (tmp_path / "ib/summary.json").exists()


def test_models_take_no_seeds(tmp_path: Path) -> None:
    words = [str(ROOT / "topologies/incast.emu.yml"), "--models", "--seeds", "2"]
    result = CliRunner().invoke(command, [*words, "--out", str(tmp_path)])
    assert isinstance(result.exception, UsageError)
    assert "--models runs one seed" in str(result.exception)
