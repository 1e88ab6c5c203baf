"""The tables of a report as plain data, the same for the terminal and the page.

A dash means that a fabric has no such thing. A question mark stands where the
machine did not keep up with a run: its numbers are no results and are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from emu.measure.recording import FlowRecord
from emu.report.facts import XMIT_WAIT, RunFacts, last_finish_ns
from emu.report.palette import HELD_BACK
from emu.report.verdict import CheckResult
from emu.units import format_rate, format_size, format_time_ns

NOT_APPLICABLE = "-"
NOT_A_RESULT = "?"


class Tone(StrEnum):
    """What a cell tells beside its text."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    FAINT = "faint"


@dataclass(frozen=True)
class Cell:
    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Column:
    name: str
    numeric: bool = True
    """Numbers are set flush right."""


@dataclass(frozen=True)
class Table:
    """`rows` are as long as `columns`; `note` is a sentence to set below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


# ---- one run -------------------------------------------------------------------------------


def flows_table(run: RunFacts, limit: int | None = None) -> Table:
    """Every flow; of more than `limit`, the unfinished and then the slowest."""
    flows = run.flows
    if limit is not None and len(flows) > limit:
        flows = tuple(sorted(flows, key=_slowest_first)[:limit])
    left_out = len(run.flows) - len(flows)
    return Table(
        title="Flows",
        columns=(
            Column("flow", numeric=False),
            Column("path", numeric=False),
            Column("size"),
            Column("start"),
            Column("took"),
            Column("goodput"),
            Column("resent"),
        ),
        rows=tuple(_flow_row(run, flow) for flow in flows),
        note=f"{left_out} faster flows are not shown; {run.name}'s summary has them all."
        if left_out
        else "",
    )


def _slowest_first(flow: FlowRecord) -> tuple[bool, int]:
    return flow.completed, -duration_ns(flow)


def duration_ns(flow: FlowRecord) -> int:
    """From start to end; 0 for an unfinished flow."""
    return 0 if flow.end_ns is None else flow.end_ns - flow.start_ns


def _flow_row(run: RunFacts, flow: FlowRecord) -> tuple[Cell, ...]:
    return (
        Cell(flow.name),
        Cell(f"{flow.src} > {flow.dst}"),
        Cell(format_size(flow.bytes)),
        Cell(format_time_ns(flow.start_ns)),
        _took(run, flow),
        _result(run, format_rate(flow.goodput_bps) if flow.completed else NOT_APPLICABLE),
        _result(run, str(flow.retransmitted_packets)),
    )


def _took(run: RunFacts, flow: FlowRecord) -> Cell:
    if not flow.completed:
        return Cell("unfinished", Tone.BAD)
    return _result(run, format_time_ns(duration_ns(flow)))


def _result(run: RunFacts, text: str, tone: Tone = Tone.PLAIN) -> Cell:
    """The text if it is a result of an honest run."""
    return Cell(text, tone) if run.conclusive else Cell(NOT_A_RESULT, Tone.FAINT)


def totals_table(run: RunFacts) -> Table:
    """What the whole fabric did, of the things that this kind of fabric does."""
    return Table(
        title="Totals",
        columns=(Column("what", numeric=False), Column("count")),
        rows=tuple(
            (Cell(label), Cell(f"{count(run):,}"))
            for label, count in (*_COUNTS, *(_CREDIT_COUNTS if run.uses_credits else _PFC_COUNTS))
        ),
    )


Count = Callable[[RunFacts], int]

_COUNTS: tuple[tuple[str, Count], ...] = (
    ("packets delivered", lambda run: run.total("packets")),
    ("packet hops", lambda run: run.total("packet_hops")),
    ("drops of lossless classes", lambda run: run.total("drops_lossless")),
    ("drops of lossy classes", lambda run: run.total("drops_lossy")),
    ("retransmitted packets", lambda run: run.total("retransmitted_packets")),
)
_PFC_COUNTS: tuple[tuple[str, Count], ...] = (
    ("pause frames", lambda run: run.total("pause_frames")),
    ("packets marked CE", lambda run: run.total("ce_marked")),
    ("CNPs", lambda run: run.total("cnp")),
)
_CREDIT_COUNTS: tuple[tuple[str, Count], ...] = (
    (f"credit waits ({XMIT_WAIT})", lambda run: run.xmit_wait),
    ("credit updates", lambda run: run.total("credit_updates")),
)


def ports_table(run: RunFacts) -> Table:
    """Each port that sent anything, the busiest first."""
    peaks = run.recording.series.queue_bytes.max(axis=0, initial=0)
    peak_bytes = dict(zip(run.recording.series.ports, peaks, strict=True))
    busiest = sorted(run.port_load.items(), key=lambda item: -item[1].utilisation)
    return Table(
        title="Ports",
        columns=(
            Column("port", numeric=False),
            Column("busy"),
            Column(HELD_BACK[run.recording.fabric].name),
            Column("deepest queue"),
        ),
        rows=tuple(
            (
                Cell(name),
                Cell(f"{load.utilisation:.1%}"),
                Cell(f"{load.waiting:.1%}"),
                Cell(format_size(int(peak_bytes[name]))),
            )
            for name, load in busiest
            if load.utilisation or load.waiting
        ),
    )


def checks_table(runs: Sequence[RunFacts]) -> Table:
    """The `verify:` of each run's spec, each check with what was measured."""
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


# ---- several runs side by side -------------------------------------------------------------


CellOf = Callable[[RunFacts], Cell]
Fabrics = tuple[str, ...]


def comparison_table(runs: Sequence[RunFacts]) -> Table:
    """What the fabrics did with the same workload, one column each."""
    traffic = dict.fromkeys(name for run in runs for name in run.traffic)
    rows: list[tuple[str, CellOf]] = [
        ("all complete, bytes equal", _all_complete),
        ("dropped packets", _count_row(lambda run: run.drops, bad=True)),
        ("retransmitted packets", _total_row("retransmitted_packets", bad=True)),
        ("pause frames", _total_row("pause_frames", only=("roce",))),
        ("packets marked CE", _total_row("ce_marked", only=("roce",))),
        ("CNPs", _total_row("cnp", only=("roce",))),
        (f"credit waits ({XMIT_WAIT})", _count_row(lambda run: run.xmit_wait, only=("ib",))),
        ("last completion", _last_completion),
        ("  arithmetic bound", _bound),
        ("  above the bound", _over_bound),
        *(row for name in traffic for row in _traffic_rows(name)),
        ("fidelity", _fidelity),
        ("  lateness, 99 % of frames", _lateness),
    ]
    conclusive = all(run.conclusive for run in runs)
    return Table(
        title="The same workload on each fabric",
        columns=(Column("", numeric=False), *(Column(run.name) for run in runs)),
        rows=tuple((Cell(label), *(cell(run) for run in runs)) for label, cell in rows),
        note="" if conclusive else f"{NOT_A_RESULT} the machine did not keep up: not a result",
    )


def completion_table(runs: Sequence[RunFacts]) -> Table:
    """How long each flow took on each fabric."""
    names = list(dict.fromkeys(flow.name for run in runs for flow in run.flows))
    flows = [{flow.name: flow for flow in run.flows} for run in runs]
    return Table(
        title="Completion times",
        columns=(Column("flow", numeric=False), *(Column(run.name) for run in runs)),
        rows=tuple(
            (
                Cell(name),
                *(
                    _took(run, own[name]) if name in own else Cell(NOT_APPLICABLE)
                    for run, own in zip(runs, flows, strict=True)
                ),
            )
            for name in names
        ),
    )


def _all_complete(run: RunFacts) -> Cell:
    if run.unfinished:
        return Cell(f"{len(run.unfinished)} of {len(run.flows)} not", Tone.BAD)
    return Cell("yes", Tone.GOOD)


def _count_row(count: Count, *, only: Fabrics = ("roce", "ib"), bad: bool = False) -> CellOf:
    """A count; a dash on fabrics that have no such thing."""

    def cell(run: RunFacts) -> Cell:
        if run.recording.fabric not in only:
            return Cell(NOT_APPLICABLE, Tone.FAINT)
        value = count(run)
        return _result(run, f"{value:,}", Tone.BAD if bad and value else Tone.PLAIN)

    return cell


def _total_row(counter: str, *, only: Fabrics = ("roce", "ib"), bad: bool = False) -> CellOf:
    return _count_row(lambda run: run.total(counter), only=only, bad=bad)


def _last_completion(run: RunFacts) -> Cell:
    if run.last_finish_ns is None:
        return Cell("unfinished", Tone.BAD)
    return _result(run, format_time_ns(run.last_finish_ns))


def _bound(run: RunFacts) -> Cell:
    if run.bound is None:
        return Cell(NOT_APPLICABLE, Tone.FAINT)
    return Cell(format_time_ns(run.bound.last_finish_ns))


def _over_bound(run: RunFacts) -> Cell:
    if run.over_bound is None:
        return Cell(NOT_APPLICABLE, Tone.FAINT)
    return _result(run, f"{run.over_bound:+.1%}")


def _traffic_rows(name: str) -> tuple[tuple[str, CellOf], ...]:
    return (
        (f"{name}: last flow over", lambda run: _traffic_finish(run, name)),
        (f"{name}: median goodput", lambda run: _traffic_goodput(run, name)),
    )


def _traffic_finish(run: RunFacts, name: str) -> Cell:
    if name not in run.traffic:
        return Cell(NOT_APPLICABLE, Tone.FAINT)
    finish = last_finish_ns(run.traffic[name])
    return Cell("unfinished", Tone.BAD) if finish is None else _result(run, format_time_ns(finish))


def _traffic_goodput(run: RunFacts, name: str) -> Cell:
    if name not in run.traffic:
        return Cell(NOT_APPLICABLE, Tone.FAINT)
    return _result(run, format_rate(run.median_goodput_bps(name)))


def _lateness(run: RunFacts) -> Cell:
    return Cell(format_time_ns(run.recording.fidelity.late_p99_ns))


def _fidelity(run: RunFacts) -> Cell:
    return Cell("ok", Tone.GOOD) if run.conclusive else Cell("INCONCLUSIVE", Tone.BAD)
