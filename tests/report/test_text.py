"""Text for the terminal, in golden files."""

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
    """A stream whose `isatty` is true."""

    def isatty(self) -> bool:
        return True


def test_text_of_a_run(golden: Golden) -> None:
    """A good run shows flows, totals, the bound and its files."""
    out = StringIO()
    print_run(four_fabrics()[1], ARTIFACTS, out)
    golden("run.txt", out.getvalue())


def test_text_of_a_run_with_faults(golden: Golden) -> None:
    """Faults of the spec stand before their consequences."""
    good = four_fabrics()[1]
    totals = good.recording.totals | {"drops_fault": 50}
    faulty = replace(good, recording=replace(good.recording, faults=FAULTS, totals=totals))
    out = StringIO()
    print_run(faulty, ARTIFACTS, out)
    golden("run-faults.txt", out.getvalue())


def test_text_of_a_run_with_failures(golden: Golden) -> None:
    """Failures are marked by words and not only by colour."""
    scenario = spec()
    ends: dict[str, int | None] = {f"incast.h{n}-h1": 600_000 + n for n in range(2, 9)}
    recording = record(scenario, ends_ns=ends | {"victim": None}, resent={"victim": 77})
    out = StringIO()
    print_run(run(recording, scenario), ARTIFACTS, out)
    golden("run-failed.txt", out.getvalue())


def test_elided_bytes_are_not_called_equal() -> None:
    """In a comparison this holds for each fabric, in the terminal and on the page."""
    _, other = four_fabrics()[:2]
    runs = [replace(other, spec=other.spec.model_copy(update={"payload": "elided"})), other]
    out = StringIO()
    print_comparison(runs, {}, out)
    (line,) = (line for line in out.getvalue().splitlines() if "bytes equal" in line)
    assert line.split("  ")[0] == "all complete, bytes equal"
    assert re.split(r"  +", line)[1:] == ["yes, bytes not compared", "yes"]
    assert "yes, bytes not compared" in comparison_page("incast", runs)


def test_text_of_an_inconclusive_run(golden: Golden) -> None:
    """The verdict comes first, and no number is presented as a result."""
    good = four_fabrics()[1]
    out = StringIO()
    print_run(
        replace(good, recording=replace(good.recording, fidelity=INCONCLUSIVE)), ARTIFACTS, out
    )
    golden("run-inconclusive.txt", out.getvalue())


def test_text_of_a_comparison(golden: Golden) -> None:
    """Four fabrics are side by side, with the conclusions."""
    out = StringIO()
    print_comparison(four_fabrics(), ARTIFACTS, out)
    golden("comparison.txt", out.getvalue())


def test_equal_notes_are_printed_once_with_all_run_names() -> None:
    """Variants of a spec often have the same warning."""
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
def test_a_narrow_terminal_cuts_no_column(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Fabrics move below each other."""
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
    """A name that looks like rich's markup is printed unchanged."""
    out = StringIO()
    print_run(replace(four_fabrics()[0], name="[bold]a[/bold]"), {}, out)
    assert out.getvalue().startswith("[bold]a[/bold]: RoCEv2")
