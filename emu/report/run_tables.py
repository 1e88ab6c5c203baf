"""The tables of one run: flows, requests, jobs, totals of the fabric, faults and ports."""

from __future__ import annotations

from emu.measure.counter_table import OTHER, PORT
from emu.measure.percentile import DEFINITION
from emu.measure.records import FaultRecord, FlowRecord, JobRecord, SweepRecord
from emu.report.palette import HELD_BACK
from emu.report.run_view import PKEY_VIOLATIONS, XMIT_WAIT, RunFacts
from emu.report.table import (
    NOT_APPLICABLE,
    UNFINISHED,
    Cell,
    Column,
    Table,
    Tone,
    duration_cell,
    of_finished,
    result,
)
from emu.units import format_rate, format_size, format_time_ns


def flows_table(run: RunFacts, limit: int | None = None) -> Table:
    """Every flow. With more than `limit` flows, the unfinished and then the slowest."""
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
            *([Column("resent")] if run.has_packets else []),
        ),
        rows=tuple(_flow_row(run, flow) for flow in flows),
        note=f"{left_out} faster flows are not shown; {run.name}'s summary has them all."
        if left_out
        else "",
    )


def _slowest_first(flow: FlowRecord) -> tuple[bool, int]:
    """A sort key: unfinished flows first, then those that took longest."""
    return flow.completed, flow.start_ns - (flow.end_ns or 0)


def _flow_row(run: RunFacts, flow: FlowRecord) -> tuple[Cell, ...]:
    return (
        Cell(flow.name),
        Cell(f"{flow.src} > {flow.dst}"),
        Cell(format_size(flow.bytes)),
        Cell(format_time_ns(flow.start_ns)),
        duration_cell(run, flow),
        _goodput(run, flow),
        *([result(run, str(flow.retransmitted_packets))] if run.has_packets else []),
    )


def _goodput(run: RunFacts, flow: FlowRecord) -> Cell:
    """The goodput. For an unfinished flow, it covers the observed time, and the cell says so."""
    rate = format_rate(flow.goodput_bps)
    if flow.completed:
        return result(run, rate)
    if flow.end_ns is None and flow.delivered_bytes is None:
        return NOT_APPLICABLE
    return result(run, f"{rate}, unfinished", Tone.BAD)


def latency_table(run: RunFacts) -> Table:
    """How long requests took, by traffic entry; no rows for flows with one request each."""
    times = ("mean", "p50", "p90", "p99", "p999", "max")
    return Table(
        title="Latency",
        columns=(
            Column("traffic", numeric=False),
            Column("requests"),
            Column("unfinished"),
            *map(Column, ("mean", "50 %", "90 %", "99 %", "99.9 %", "max")),
        ),
        rows=tuple(
            (
                Cell(latency.traffic),
                Cell(f"{latency.requests:,}"),
                Cell(f"{latency.unfinished:,}", Tone.BAD if latency.unfinished else Tone.PLAIN),
                *(
                    of_finished(run, getattr(latency, f"{name}_ns"), format_time_ns)
                    for name in times
                ),
            )
            for latency in run.latencies
        ),
        note="From the start of a request to its last byte in memory. "
        f"{DEFINITION}: n is requests less unfinished.",
    )


def jobs_table(run: RunFacts) -> Table:
    """The figures of nccl-tests for each collective; no rows without collectives."""
    return Table(
        title="Collectives",
        columns=(
            Column("name", numeric=False),
            Column("collective", numeric=False),
            Column("algorithm", numeric=False),
            Column("ranks"),
            Column("size"),
            Column("time"),
            Column("algbw"),
            Column("busbw"),
            Column("wrong"),
        ),
        rows=tuple(_job_row(run, job) for job in run.recording.jobs),
        note="algbw is size divided by time. busbw is comparable with the rate of a link for any "
        "number of ranks. Wrong: the number of values that differ from the expected result.",
    )


def _job_row(run: RunFacts, job: JobRecord) -> tuple[Cell, ...]:
    named = Cell(job.name), Cell(job.collective), Cell(job.algorithm), Cell(str(job.ranks))
    return (*named, Cell(format_size(job.bytes)), *_job_results(run, job))


def _job_results(run: RunFacts, job: JobRecord) -> tuple[Cell, ...]:
    if job.took_ns is None or job.algbw_bytes_per_s is None or job.busbw_bytes_per_s is None:
        return UNFINISHED, NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE
    return (
        result(run, format_time_ns(job.took_ns)),
        result(run, format_rate(job.algbw_bytes_per_s * 8)),
        result(run, format_rate(job.busbw_bytes_per_s * 8)),
        NOT_APPLICABLE if job.wrong is None else result(run, *_wrong(job.wrong)),
    )


def _wrong(values: int) -> tuple[str, Tone]:
    return f"{values:,}", Tone.BAD if values else Tone.PLAIN


def totals_table(run: RunFacts) -> Table:
    """Totals of the whole fabric. The rows depend on the kind of fabric; no rows if the model knows
    no packets."""
    if not run.has_packets:
        return Table("Totals", (), ())
    counts = _TOTALS | (_IB_TOTALS if run.uses_credits else _ROCE_TOTALS)
    if run.recording.faults:
        counts |= {"drops by faults": "drops_fault"}
    if run.total("pfc_storms"):
        counts |= {"PFC storms": "pfc_storms", "drops by the PFC watchdog": "drops_watchdog"}
    if run.total("drops_other"):
        counts |= {"other drops": "drops_other"}
    rows = [(label, run.total(counter)) for label, counter in counts.items()]
    if run.dropped_by_hosts:
        rows.append(("dropped by NICs", run.dropped_by_hosts))
    if run.refusals:
        rows.append((f"dropped by hosts ({PKEY_VIOLATIONS})", sum(run.refusals.values())))
    if run.uses_credits:
        rows.append((f"credit waits ({XMIT_WAIT})", run.xmit_wait))
    return Table(
        title="Totals",
        columns=(Column("what", numeric=False), Column("count")),
        rows=tuple((Cell(label), Cell(f"{count:,}")) for label, count in rows),
        note=_other_drops(run) if run.total("drops_other") else "",
    )


def _other_drops(run: RunFacts) -> str:
    """A sentence with the port counters that make up the other drops."""
    places = [*run.recording.ports.values(), *run.recording.hosts.values()]
    names = PORT.public_drops(run.recording.fabric_kind.framing, PORT.drops(OTHER, injected=False))
    counts = {name: sum(own.get(name, 0) for own in places) for name in names}
    named = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    return f"Other drops, as ports count them: {named}."


_TOTALS = {
    "packets sent": "packets",
    "packet hops": "packet_hops",
    "drops of lossless classes": "drops_lossless",
    "drops of lossy classes": "drops_lossy",
    "retransmitted packets": "retransmitted_packets",
}
_ROCE_TOTALS = {"pause frames": "pause_frames", "packets marked CE": "ce_marked", "CNPs": "cnp"}
_IB_TOTALS = {"credit updates": "credit_updates"}


def faults_table(run: RunFacts) -> Table:
    """The injected faults and what they did; no rows without faults."""
    return Table(
        title="Faults",
        columns=(
            Column("fault", numeric=False),
            Column("where", numeric=False),
            Column("from"),
            Column("until"),
            Column("packets seen"),
            Column("hits"),
            Column("packets dropped"),
        ),
        rows=tuple(_fault_row(run, fault) for fault in run.recording.faults),
        note="A hit is a packet that the fault did something to, a link that went down, or a "
        "pause that was sent.",
    )


def _fault_row(run: RunFacts, fault: FaultRecord) -> tuple[Cell, ...]:
    return (
        Cell(fault.name),
        Cell(fault.place),
        Cell(format_time_ns(fault.at_ns)),
        Cell("the end" if fault.end_ns is None else format_time_ns(fault.end_ns)),
        result(run, f"{fault.packets_seen:,}") if fault.packets_seen else NOT_APPLICABLE,
        result(run, f"{fault.hits:,}"),
        result(run, f"{fault.packets_dropped:,}"),
    )


def sweeps_table(run: RunFacts) -> Table:
    """The subnet manager's sweeps after links changed; no rows without sweeps."""
    return Table(
        title="Sweeps",
        columns=(
            Column("links changed"),
            Column("new tables in force"),
            Column("gap"),
            Column("in wall-clock time"),
            Column("OpenSM took"),
        ),
        rows=tuple(_sweep_row(run, sweep) for sweep in run.recording.sweeps),
        note="Packets sent to a lost link in the gap count as packets that the fault dropped.",
    )


def _sweep_row(run: RunFacts, sweep: SweepRecord) -> tuple[Cell, ...]:
    gap_ns = sweep.in_force_ns - sweep.at_ns
    is_real = sweep.seconds is not None
    wall_ns = round(gap_ns * run.recording.slowdown)
    return (
        Cell(format_time_ns(sweep.at_ns)),
        Cell(format_time_ns(sweep.in_force_ns)),
        result(run, format_time_ns(gap_ns)),
        Cell(format_time_ns(wall_ns)) if is_real else NOT_APPLICABLE,
        Cell(f"{sweep.seconds:.3f} s") if is_real else NOT_APPLICABLE,
    )


def deadlocks_table(run: RunFacts) -> Table:
    """The switch ports of each credit loop or cyclic buffer dependency; no rows without any."""
    return Table(
        title="Deadlocks",
        columns=(
            Column("found at"),
            Column("virtual lane" if run.uses_credits else "priority"),
            Column("each waits for the next, the last for the first", numeric=False),
        ),
        rows=tuple(
            (
                Cell(format_time_ns(deadlock.found_ns)),
                Cell(str(deadlock.priority)),
                Cell(" ".join(deadlock.ports), Tone.BAD),
            )
            for deadlock in run.recording.deadlocks
        ),
    )


def ports_table(run: RunFacts, limit: int) -> Table:
    """The busiest ports first, at most `limit` of them."""
    peak_bytes: dict[str, int] = {}
    if run.has_packets:
        peaks = run.recording.series.queue_bytes.max(axis=0, initial=0)
        peak_bytes = dict(zip(run.recording.series.ports, peaks.tolist(), strict=True))
    held_back = HELD_BACK[run.recording.fabric_kind.flow_control].name
    busiest = sorted(run.port_load.items(), key=lambda item: -item[1].utilisation)
    left_out = max(0, len(busiest) - limit)
    return Table(
        title="Ports",
        columns=(
            Column("port", numeric=False),
            Column("busy"),
            *([Column(held_back), Column("deepest queue")] if run.has_packets else []),
        ),
        rows=tuple(
            (
                Cell(name),
                Cell(f"{load.utilisation:.1%}"),
                *([] if load.waiting is None else [Cell(f"{load.waiting:.1%}")]),
                *([Cell(format_size(peak_bytes[name]))] if name in peak_bytes else []),
            )
            for name, load in busiest[:limit]
        ),
        note=f"{left_out} ports that were less busy are not shown; {run.name}'s summary has them "
        "all."
        if left_out
        else "",
    )
