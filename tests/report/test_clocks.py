"""The emulator's error: both clocks side by side, for one seed and for several."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from click.testing import CliRunner

from emu.cli.compare import command as compare
from emu.errors import UsageError
from emu.report.clocks import BothClocks, Seeds, clocks_document, clocks_table
from emu.report.run_view import RunFacts
from emu.report.store import load_recording
from emu.runtime.record import record as record_run
from emu.runtime.virtual import VirtualRunner
from tests.support.synthetic import INCONCLUSIVE, record, run, spec

VIRTUAL_NS = 600_000


@pytest.fixture
def without_a_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the virtual clock in place of the real one."""
    monkeypatch.setattr(
        "emu.cli.compare.record",
        lambda name, spec, _, out, **options: record_run(
            name, spec, VirtualRunner(), out, **options
        ),
    )


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


def test_one_seed_shows_the_difference_of_two_runs() -> None:
    table = clocks_table(_seeds(630_000))

    row = next(cells for cells in table.rows if cells[0].text == "last completion")
    assert [cell.text for cell in row] == ["last completion", "630 us", "600 us", "+5.0%"]


def test_one_outlier_does_not_move_the_median() -> None:
    seeds = _seeds(606_000, 612_000, 600_000, 900_000, 594_000)

    figure = _figure(seeds, "last completion")
    assert figure["relative"] == pytest.approx(median([0.01, 0.02, 0.0, 0.5, -0.01]))
    assert figure["middle_half"] == pytest.approx((0.0, 0.02))


def test_inconclusive_seeds_are_left_out_and_noted() -> None:
    slow = BothClocks(_late(_run(900_000)), _run(VIRTUAL_NS))
    seeds = Seeds("dcqcn", [*_seeds(606_000, 606_000).runs, slow])

    assert _figure(seeds, "last completion")["relative"] == pytest.approx(0.01)
    assert "1 of 3 seeds" in clocks_table(seeds).note


def test_inconclusive_runs_alone_give_no_figures() -> None:
    seeds = Seeds("dcqcn", [BothClocks(_late(_run(900_000)), _run(VIRTUAL_NS))])

    table = clocks_table(seeds)
    assert table.rows == ()
    assert "did not keep up" in table.note


def test_an_unfinished_flow_has_no_completion_time() -> None:
    figure = _figure(_seeds(None, 606_000), "last completion")

    assert figure["real"] == (None, 606_000)
    assert figure["relative"] == pytest.approx(0.01)


SPEC = """
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 20KB}]
compare: {roce: {}, lossless: {switches: {pfc: {}}}}
"""


@pytest.mark.usefixtures("without_a_lab")
@pytest.mark.parametrize(
    ("seeds", "places"), [("1", ["."]), ("2", ["seed-1", "seed-2"])], ids=["one", "two"]
)
def test_clocks_writes_the_figures_and_every_run(
    tmp_path: Path, seeds: str, places: list[str]
) -> None:
    """The files lie in the folder of `--out`. The output of `--json` equals clocks.json."""
    spec, out = tmp_path / "pair.emu.yml", tmp_path / "out"
    spec.write_text(SPEC)
    words = [str(spec), "--clocks", "--seeds", seeds, "--out", str(out), "--json"]
    ended = CliRunner().invoke(compare, words)
    assert ended.exit_code == 0
    assert (out / "clocks.json").read_text() == ended.stdout
    runs = json.loads(ended.stdout)["runs"]
    assert list(runs) == ["roce", "lossless"]
    for name, found in runs.items():
        (last,) = (f for f in found["figures"] if f["figure"] == "last completion")
        kept = {
            clock: [load_recording(out / clock / name / place) for place in places]
            for clock in ("real", "virtual")
        }
        for clock, recordings in kept.items():
            assert [own.flows[0].end_ns for own in recordings] == last[clock]
            assert len({own.seed for own in recordings}) == len(places)


def test_clock_and_clocks_exclude_each_other(tmp_path: Path) -> None:
    """`--clock` would have no effect."""
    spec = tmp_path / "pair.emu.yml"
    spec.write_text(SPEC)
    for clock in ("real", "virtual"):
        error = CliRunner().invoke(compare, [str(spec), "--clocks", "--clock", clock]).exception
        assert isinstance(error, UsageError)
        assert str(error) == "--clock: --clocks runs on both; leave one of the two out"
