"""What the terminal shows: whole texts, to be reviewed when they change."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from emu.report.html import comparison_page
from emu.report.text import print_comparison, print_run
from tests.support.synthetic import FAULTS, INCONCLUSIVE, four_fabrics, record, run, spec

ARTIFACTS = {"page": Path("out/report.html"), "summary": Path("out/summary.json")}
Golden = Callable[[str, str], None]


COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_run(golden: Golden) -> None:
    """A good run: flows, totals, the bound, where the files are."""
    out = StringIO()
    print_run(four_fabrics()[1], ARTIFACTS, out)
    golden("run.txt", out.getvalue())


def test_run_with_faults(golden: Golden) -> None:
    """What went wrong on purpose stands before what came of it."""
    good = four_fabrics()[1]
    totals = good.recording.totals | {"drops_fault": 50}
    faulty = replace(good, recording=replace(good.recording, faults=FAULTS, totals=totals))
    out = StringIO()
    print_run(faulty, ARTIFACTS, out)
    golden("run-faults.txt", out.getvalue())


def test_run_with_failed_checks_and_an_unfinished_flow(golden: Golden) -> None:
    """What went wrong stands out in words, not only in colour."""
    scenario = spec()
    ends: dict[str, int | None] = {f"incast.h{n}-h1": 600_000 + n for n in range(2, 9)}
    recording = record(scenario, ends_ns=ends | {"victim": None}, resent={"victim": 77})
    out = StringIO()
    print_run(run(recording, scenario), ARTIFACTS, out)
    golden("run-failed.txt", out.getvalue())


def test_bytes_that_were_left_out_are_not_called_equal() -> None:
    """In a comparison: of each fabric what is true of it, in the terminal and on the page."""
    _, other = four_fabrics()[:2]
    runs = [replace(other, spec=other.spec.model_copy(update={"payload": "elided"})), other]
    out = StringIO()
    print_comparison(runs, {}, out)
    (line,) = (line for line in out.getvalue().splitlines() if "bytes equal" in line)
    assert line.split("  ")[0] == "all complete, bytes equal"
    assert re.split(r"  +", line)[1:] == ["yes, not compared", "yes"]
    assert "yes, not compared" in comparison_page("incast", runs)


def test_inconclusive_run_shows_no_results(golden: Golden) -> None:
    """It is said first, and no number is passed off as a result."""
    good = four_fabrics()[1]
    out = StringIO()
    print_run(
        replace(good, recording=replace(good.recording, fidelity=INCONCLUSIVE)), ARTIFACTS, out
    )
    golden("run-inconclusive.txt", out.getvalue())


def test_comparison(golden: Golden) -> None:
    """Four fabrics side by side, and what they teach."""
    out = StringIO()
    print_comparison(four_fabrics(), ARTIFACTS, out)
    golden("comparison.txt", out.getvalue())


def test_a_note_of_several_runs_is_printed_once_with_their_names() -> None:
    """Variants of one spec are warned of the same."""
    lossy, pfc, *_ = four_fabrics()
    notes = {"roce-lossy": ("both", "one"), "roce-pfc": ("both",)}
    runs = [
        replace(own, recording=replace(own.recording, notes=notes[own.name]))
        for own in (lossy, pfc)
    ]
    out = StringIO()
    print_comparison(runs, {}, out)
    told = [line for line in out.getvalue().splitlines() if line.startswith("Note on")]
    assert told == ["Note on roce-lossy and roce-pfc: both", "Note on roce-lossy: one"]


@pytest.mark.parametrize("columns", [80, 60])
def test_terminal_is_not_overrun(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """On a narrow terminal fabrics move below each other, and no column is cut off."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    print_comparison(four_fabrics(), {}, out)
    text = COLOURS.sub("", out.getvalue())
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert "…" not in text
    assert "1,200,000" in text


def test_names_are_not_markup() -> None:
    """A name that looks like rich's markup is printed as it is."""
    out = StringIO()
    print_run(replace(four_fabrics()[0], name="[bold]a[/bold]"), {}, out)
    assert out.getvalue().startswith("[bold]a[/bold]: RoCEv2")
