"""The checks of the spec's `verify:` after one run or several, each with the measured value."""

from __future__ import annotations

from collections.abc import Sequence

from emu.report.run_view import RunFacts
from emu.report.table import Cell, Column, Table, Tone
from emu.report.verdict import CheckResult


def checks_table(runs: Sequence[RunFacts]) -> Table:
    """One row for each check. With several runs, each row names its run."""
    named = len(runs) > 1
    columns = ("verdict", *(("fabric",) if named else ()), "check", "measured")
    return Table(
        title="Checks",
        columns=tuple(Column(name, numeric=False) for name in columns),
        rows=tuple(
            (
                _verdict(result),
                *((Cell(run.name),) if named else ()),
                Cell(result.check),
                Cell(result.detail),
            )
            for run in runs
            for result in run.checks
        ),
    )


def _verdict(result: CheckResult) -> Cell:
    if result.passed is None:
        return Cell("not judged", Tone.FAINT)
    return Cell("passed", Tone.GOOD) if result.passed else Cell("FAILED", Tone.BAD)
