"""How long training steps took, and how much of that was communication."""

from __future__ import annotations

from emu.measure.records import StepRecord
from emu.report.run_view import RunFacts
from emu.report.table import NOT_APPLICABLE, UNFINISHED, Cell, Column, Table, result
from emu.units import format_size, format_time_ns


def steps_table(run: RunFacts) -> Table:
    """A row for each step; no rows without steps."""
    return Table(
        title="Steps",
        columns=(
            Column("step", numeric=False),
            Column("took"),
            Column("work alone"),
            Column("exposed"),
            Column("sent for", numeric=False),
        ),
        rows=tuple(_row(run, step) for step in run.recording.steps),
        note="Work alone: the time of a step if messages took no time. Exposed: the time that "
        "communication adds.",
    )


def _row(run: RunFacts, step: StepRecord) -> tuple[Cell, ...]:
    sent = (f"{what} {format_size(size)}" for what, size in step.bytes_for.items() if size)
    return (
        Cell(step.name),
        duration_cell(run, step),
        Cell(format_time_ns(step.work_alone_ns)),
        exposed(run, step),
        Cell(", ".join(sent)),
    )


def duration_cell(run: RunFacts, step: StepRecord) -> Cell:
    return UNFINISHED if step.took_ns is None else result(run, format_time_ns(step.took_ns))


def exposed(run: RunFacts, step: StepRecord) -> Cell:
    """The exposed communication, with its share of the step."""
    if step.exposed_ns is None or not step.took_ns:
        return NOT_APPLICABLE
    share = step.exposed_ns / step.took_ns
    return result(run, f"{format_time_ns(step.exposed_ns)} ({share:.0%})")
