"""The tables of a comparison: the fabrics side by side, one column each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from emu.fabric_kind import FabricKind, FlowControl, Framing
from emu.measure.fct import Bucket
from emu.measure.ios import IoFigures
from emu.measure.records import StepRecord
from emu.measure.requests import Latency
from emu.report import steps_table
from emu.report.inference_table import prompt_rows
from emu.report.phrases import without_work
from emu.report.run_view import XMIT_WAIT, RunFacts, last_finish_ns
from emu.report.table import (
    NOT_A_RESULT,
    NOT_APPLICABLE,
    NOT_KNOWN,
    UNFINISHED,
    Cell,
    Column,
    Table,
    Tone,
    duration_cell,
    result,
)
from emu.report.workloads import alike
from emu.units import format_rate, format_time_ns

CellOf = Callable[[RunFacts], Cell]
"""The cell of a run in a row."""
Count = Callable[[RunFacts], int]
Fabrics = Callable[[FabricKind], bool]
"""Whether a kind of fabric has such a thing."""
_NO_RESULT = f"{NOT_A_RESULT.text} means no result: the machine did not keep up"


def comparison_table(runs: Sequence[RunFacts]) -> Table:
    """How each fabric handled its workload, one column each."""
    traffic = dict.fromkeys(name for run in runs for name in run.traffic)
    requested = dict.fromkeys(latency.traffic for run in runs for latency in run.latencies)
    drives = dict.fromkeys((own.latency.traffic, own.way) for run in runs for own in run.ios)
    served = dict.fromkeys(own.traffic for run in runs for own in run.prompts)
    loads = dict.fromkeys(slowdown.traffic for run in runs for slowdown in run.fct_slowdowns)
    jobs = dict.fromkeys(job.name for run in runs for job in run.recording.jobs)
    steps = dict.fromkeys(step.name for run in runs for step in run.recording.steps)
    mixed = {*steps, *loads, *served, *(name for name, _ in drives)}
    rows: list[tuple[str, CellOf]] = [
        ("all complete, bytes equal", _all_complete),
        ("failed queue pairs", _count_row(_given_up, bad=True)),
        ("dropped packets", _count_row(lambda run: run.drops, bad=True)),
        *(
            (what, _count_row(count, bad=True))
            for what, count in (("  lost to faults", _by_faults), ("  dropped by NICs", _by_hosts))
            if any(map(count, runs))
        ),
        ("retransmitted packets", _total_row("retransmitted_packets", bad=True)),
        ("pause frames", _total_row("pause_frames", only=_has_pauses)),
        ("packets marked CE", _total_row("ce_marked", only=_is_ethernet)),
        *_answer_rows(runs),
        (f"credit waits ({XMIT_WAIT})", _count_row(lambda run: run.xmit_wait, only=_uses_credits)),
        ("last completion", _last_completion),
        ("  arithmetic bound", _bound),
        ("  above the bound", _over_bound),
        *(row for name in traffic for row in _traffic_rows(name, mixed=name in mixed)),
        *(row for name in requested for row in _latency_rows(name)),
        *(row for name, way in drives for row in _drive_rows(name, way)),
        *(row for name in served for row in prompt_rows(name)),
        *(row for name in loads for row in _fct_rows(name)),
        *(_busbw_row(name) for name in jobs),
        *(row for name in steps for row in _step_rows(name)),
        *(() if all(run.recording.is_exact for run in runs) else _FIDELITY_ROWS),
    ]
    conclusive = all(run.conclusive for run in runs)
    return Table(
        title="The same workload on each fabric"
        if len(alike(runs)) == 1
        else "Side by side: the workloads differ",
        columns=(Column("", numeric=False), *(Column(run.name) for run in runs)),
        rows=tuple((Cell(label), *(cell(run) for run in runs)) for label, cell in rows),
        note=". ".join(filter(None, [_NO_RESULT if not conclusive else "", without_work(runs)])),
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
                    duration_cell(run, own[name]) if name in own else NOT_APPLICABLE
                    for run, own in zip(runs, flows, strict=True)
                ),
            )
            for name in names
        ),
    )


def _given_up(run: RunFacts) -> int:
    return len(run.recording.failed_queue_pairs)


def _by_faults(run: RunFacts) -> int:
    return run.dropped_by_faults


def _by_hosts(run: RunFacts) -> int:
    return run.dropped_by_hosts


def _all_complete(run: RunFacts) -> Cell:
    if run.unfinished:
        return Cell(f"{len(run.unfinished)} of {len(run.flows)} unfinished", Tone.BAD)
    if run.spec.payload == "elided" or not run.has_packets:
        return Cell("yes, bytes not compared")
    return Cell("yes", Tone.GOOD)


def _any_fabric(_kind: FabricKind) -> bool:
    return True


def _is_ethernet(kind: FabricKind) -> bool:
    return kind.is_ethernet


def _has_fecn(kind: FabricKind) -> bool:
    return kind.framing is Framing.INFINIBAND


def _has_pauses(kind: FabricKind) -> bool:
    return kind.flow_control is FlowControl.PAUSES


def _uses_credits(kind: FabricKind) -> bool:
    return kind.uses_credits


def _count_row(count: Count, *, only: Fabrics = _any_fabric, bad: bool = False) -> CellOf:
    """A count; a dash on fabrics that do not have it."""

    def cell(run: RunFacts) -> Cell:
        if not run.has_packets:
            return NOT_KNOWN
        if not only(run.recording.fabric_kind):
            return NOT_APPLICABLE
        value = count(run)
        return result(run, f"{value:,}", Tone.BAD if bad and value else Tone.PLAIN)

    return cell


def _answer_rows(runs: Sequence[RunFacts]) -> Iterator[tuple[str, CellOf]]:
    """InfiniBand's marks (FECN), where any run has them, and the ACKs that returned them (BECN)."""
    if any(map(_fecn_marked, runs)):
        yield "packets marked FECN", _count_row(_fecn_marked, only=_has_fecn)
    has_fecn = any(_has_fecn(run.recording.fabric_kind) and run.total("cnp") for run in runs)
    yield "CNPs", _total_row("cnp", only=_any_fabric if has_fecn else _is_ethernet)
    if any(map(_becns, runs)):
        yield "ACKs with BECN", _count_row(_becns)


def _fecn_marked(run: RunFacts) -> int:
    return sum(own.get("fecn_marked", 0) for own in run.recording.ports.values())


def _becns(run: RunFacts) -> int:
    return sum(own.get("rp_becn_received", 0) for own in run.recording.hosts.values())


def _total_row(counter: str, *, only: Fabrics = _any_fabric, bad: bool = False) -> CellOf:
    return _count_row(lambda run: run.total(counter), only=only, bad=bad)


def _last_completion(run: RunFacts) -> Cell:
    if run.last_finish_ns is None:
        return UNFINISHED
    return result(run, format_time_ns(run.last_finish_ns))


def _bound(run: RunFacts) -> Cell:
    if run.bound is None:
        return NOT_APPLICABLE
    return Cell(format_time_ns(run.bound.last_finish_ns))


def _over_bound(run: RunFacts) -> Cell:
    if run.over_bound is None:
        return NOT_APPLICABLE
    return result(run, f"{run.over_bound:+.1%}")


def _traffic_rows(name: str, *, mixed: bool) -> Iterator[tuple[str, CellOf]]:
    """Rows of completion and goodput. Goodput is left out where it means nothing: for flows that
    carry commands beside data, that wait for computation, or that wait for their next message."""
    yield f"{name}: last completion", lambda run: _traffic_finish(run, name)
    if not mixed:
        yield f"{name}: median goodput", lambda run: _traffic_goodput(run, name)


def _traffic_finish(run: RunFacts, name: str) -> Cell:
    if name not in run.traffic:
        return NOT_APPLICABLE
    finish = last_finish_ns(run.traffic[name])
    return UNFINISHED if finish is None else result(run, format_time_ns(finish))


def _traffic_goodput(run: RunFacts, name: str) -> Cell:
    if name not in run.traffic:
        return NOT_APPLICABLE
    rate, left = format_rate(run.median_goodput_bps(name)), run.unfinished_of(name)
    return result(run, f"{rate}, {left} unfinished" if left else rate, _bad_if(left))


def _bad_if(count: int) -> Tone:
    return Tone.BAD if count else Tone.PLAIN


def _latency_rows(name: str) -> tuple[tuple[str, CellOf], ...]:
    return (
        (f"{name}: requests finished (n)", lambda run: _latency_count(run, name)),
        (f"{name}: latency, 50 %", lambda run: _latency(run, name, lambda own: own.p50_ns)),
        (f"{name}: latency, 99 %", lambda run: _latency(run, name, lambda own: own.p99_ns)),
    )


def _latency_count(run: RunFacts, name: str) -> Cell:
    own = next((latency for latency in run.latencies if latency.traffic == name), None)
    return NOT_APPLICABLE if own is None else result(run, f"{own.finished:,}")


def _latency(run: RunFacts, name: str, percentile: Callable[[Latency], int | None]) -> Cell:
    own = next((latency for latency in run.latencies if latency.traffic == name), None)
    return NOT_APPLICABLE if own is None else _time(run, own, percentile(own))


def _iops(run: RunFacts, own: IoFigures) -> Cell:
    if own.iops is None:
        return _none_finished(run, own.latency.requests)
    return result(run, f"{own.iops:,}")


def _drive_rows(name: str, way: str) -> tuple[tuple[str, CellOf], ...]:
    def row(figure: Callable[[RunFacts, IoFigures], Cell]) -> CellOf:
        def cell(run: RunFacts) -> Cell:
            found = (own for own in run.ios if (own.latency.traffic, own.way) == (name, way))
            own = next(found, None)
            return NOT_APPLICABLE if own is None else figure(run, own)

        return cell

    return (
        (f"{name}: {way} IOPS", row(_iops)),
        (
            f"{name}: {way}s finished (n)",
            row(lambda run, own: result(run, f"{own.latency.finished:,}")),
        ),
        (
            f"{name}: {way} latency, 50 %",
            row(lambda run, own: _time(run, own.latency, own.latency.p50_ns)),
        ),
        (
            f"{name}: {way} latency, 99 %",
            row(lambda run, own: _time(run, own.latency, own.latency.p99_ns)),
        ),
    )


def _time(run: RunFacts, own: Latency, took_ns: int | None) -> Cell:
    """A latency of the finished requests. The cell names the unfinished, often the slowest."""
    if took_ns is None:
        return _none_finished(run, own.requests)
    text = format_time_ns(took_ns)
    if own.unfinished:
        return result(run, f"{text}, {own.unfinished} unfinished", Tone.BAD)
    return result(run, text)


def _none_finished(run: RunFacts, count: int) -> Cell:
    return result(run, f"none of {count:,} finished", Tone.BAD)


def _fct_rows(name: str) -> tuple[tuple[str, CellOf], ...]:
    return (
        (f"{name}: messages finished (n)", lambda run: _fct_count(run, name)),
        (f"{name}: FCT slowdown, 50 %", lambda run: _fct(run, name, lambda own: own.p50)),
        (f"{name}: FCT slowdown, 99 %", lambda run: _fct(run, name, lambda own: own.p99)),
    )


def _fct_count(run: RunFacts, name: str) -> Cell:
    own = next((slowdown for slowdown in run.fct_slowdowns if slowdown.traffic == name), None)
    if own is None:
        return NOT_APPLICABLE
    left = own.whole.unfinished
    text = f"{own.whole.finished:,}" + (f", {left:,} unfinished" if left else "")
    return result(run, text, _bad_if(left))


def _fct(run: RunFacts, name: str, percentile: Callable[[Bucket], float | None]) -> Cell:
    own = next((slowdown for slowdown in run.fct_slowdowns if slowdown.traffic == name), None)
    if own is None:
        return NOT_APPLICABLE
    value = percentile(own.whole)
    if value is None:
        return _none_finished(run, own.whole.messages)
    return result(run, f"{value:,.2f}")


def _step_rows(name: str) -> tuple[tuple[str, CellOf], ...]:
    return (
        (f"{name}: step", lambda run: _of_step(run, name, steps_table.duration_cell)),
        (f"{name}: exposed communication", lambda run: _of_step(run, name, steps_table.exposed)),
    )


def _of_step(run: RunFacts, name: str, cell: Callable[[RunFacts, StepRecord], Cell]) -> Cell:
    step = next((step for step in run.recording.steps if step.name == name), None)
    return NOT_APPLICABLE if step is None else cell(run, step)


def _busbw_row(name: str) -> tuple[str, CellOf]:
    def cell(run: RunFacts) -> Cell:
        rates = {job.name: job.busbw_bytes_per_s for job in run.recording.jobs}
        rate = rates.get(name)
        return NOT_APPLICABLE if rate is None else result(run, format_rate(rate * 8))

    return f"{name}: busbw", cell


def _lateness(run: RunFacts) -> Cell:
    if not run.has_packets:
        return NOT_KNOWN
    return Cell(format_time_ns(run.recording.fidelity.late_p99_ns))


def _fidelity(run: RunFacts) -> Cell:
    if not run.has_packets:
        return NOT_KNOWN
    return Cell("ok", Tone.GOOD) if run.conclusive else Cell("INCONCLUSIVE", Tone.BAD)


_FIDELITY_ROWS: tuple[tuple[str, CellOf], ...] = (
    ("fidelity", _fidelity),
    ("  lateness, 99 % of frames", _lateness),
)
"""Of runs whose frames can be late."""
