"""Reports of the flow model: the same as of packets, and what it does not know is left out."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.compare import command as compare
from emu.cli.run import command as run
from emu.errors import ExitCode, UsageError
from emu.report.html import run_page
from emu.report.junit import junit_xml
from emu.report.store import load_recording, save_recording
from emu.report.text import print_run
from tests.flow_model.test_limits import VICTIM
from tests.support.flow_runs import by_flows, facts_by_flows

ROOT = Path(__file__).parents[2]
INCAST = str(ROOT / "topologies" / "incast.emu.yml")
PAIR = str(ROOT / "topologies" / "pair.emu.yml")
CHECKED = VICTIM + "verify: [{completed: all}, {lossless: {priority: 3}}]\n"


def test_counters_are_absent_and_not_zero() -> None:
    """The summary has no counters of ports, hosts and the whole fabric."""
    summary = facts_by_flows(VICTIM).summary
    assert summary["model"] == "flow"
    assert (summary["ports"], summary["hosts"], summary["totals"]) == ({}, {}, {})
    assert {flow["retransmitted_packets"] for flow in summary["flows"]} == {None}
    assert summary["not_known"]
    assert summary["warnings"]


def test_checks_of_packets_are_not_judged() -> None:
    """They neither pass nor fail."""
    completed, lossless = facts_by_flows(CHECKED).checks
    assert completed.passed is True
    assert lossless.passed is None
    assert lossless.detail == "the flow model does not know it"
    assert '<skipped message="the flow model does not know it"' in junit_xml(
        facts_by_flows(CHECKED)
    )


def test_text_says_what_is_not_known() -> None:
    """No totals, no column of retransmissions, and a section of its own."""
    out = StringIO()
    print_run(facts_by_flows(CHECKED), {}, out)
    text = out.getvalue()
    assert "RoCEv2, flow model, seed 1" in text
    assert "What the flow model does not know\n- It has no packets" in text
    assert "head-of-line blocking" in text
    assert "not judged" in text
    for word in ("resent", "Totals", "Fidelity", "pause frames", "0 packets"):
        assert word not in text


def test_page_says_what_is_not_known() -> None:
    """The picture shows loads, and no charts of queues and pauses."""
    page = run_page(facts_by_flows(CHECKED))
    assert "<h2>What the flow model does not know</h2>" in page
    assert "<h2>Where this model is wrong</h2>" in page
    assert "1 of 2 checks passed, 1 not judged" in page
    assert "% busy" in page
    for word in ("Queue depth", "Held back by flow control", "deepest queue", "Totals"):
        assert word not in page


def test_a_recording_is_stored_and_loaded(tmp_path: Path) -> None:
    """Without arrays of what is not known."""
    recording = by_flows(VICTIM)
    save_recording(recording, tmp_path)
    loaded = load_recording(tmp_path)
    assert (loaded.model, loaded.not_known, loaded.warnings) == (
        recording.model,
        recording.not_known,
        recording.warnings,
    )
    assert loaded.flows == recording.flows
    assert loaded.series.queue_bytes.shape == recording.series.queue_bytes.shape


def test_run_takes_the_model(tmp_path: Path) -> None:
    """`--json` has its summary."""
    result = CliRunner().invoke(run, [PAIR, "--model", "flow", "--json", "--out", str(tmp_path)])
    assert result.exit_code == ExitCode.OK
    assert json.loads(result.stdout)["model"] == "flow"


def test_compare_shows_variants_by_flows(tmp_path: Path) -> None:
    """What it does not know is `not known`."""
    result = CliRunner().invoke(compare, [INCAST, "--model", "flow", "--out", str(tmp_path)])
    assert result.exit_code == ExitCode.OK
    (pauses,) = [line for line in result.stdout.splitlines() if line.startswith("pause frames")]
    assert pauses.split("  ")[-1].strip() == "not known"


def test_compare_shows_both_models(tmp_path: Path) -> None:
    """With the difference of each figure, as text, page and document."""
    result = CliRunner().invoke(compare, [PAIR, "--models", "--json", "--out", str(tmp_path)])
    assert result.exit_code == ExitCode.OK
    document = json.loads(result.stdout)
    assert document["schema"] == "emu.models/1"
    figures = document["runs"]["pair"]["figures"]
    assert {figure["name"] for figure in figures} >= {"last completion"}
    assert all(abs(figure["relative"]) < 0.05 for figure in figures)
    page = (tmp_path / "models.html").read_text()
    assert "The two models" in page
    assert "difference" in page
    assert json.loads((tmp_path / "models.json").read_text()) == document


@pytest.mark.parametrize(
    ("command", "options", "says"),
    [
        (run, ["--model", "flow", "--clock", "real"], "--clock: the flow model has no clock"),
        (compare, ["--models", "--clock", "virtual"], "--clock: --models runs packets"),
        (compare, ["--models", "--model", "flow"], "--model: --models runs both"),
        (compare, ["--models", "--clocks"], "--clocks and --models"),
        (compare, ["--clocks", "--model", "flow"], "--model: --clocks compares"),
    ],
)
def test_options_that_exclude_each_other(
    command: object, options: list[str], says: str, tmp_path: Path
) -> None:
    """The error names the option."""
    result = CliRunner().invoke(command, [INCAST, *options, "--out", str(tmp_path)])  # type: ignore[arg-type]
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith(says)
