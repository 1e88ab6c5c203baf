"""Tail latency: how long messages, or I/Os, of each traffic entry took.

The training draft wants minimum, mean, P50, P95, P99, P99.9 and maximum of the one-way latency of
frames. The emulator records messages: from the post of a message to its last byte in the receiver's
memory; of storage I/Os, from the command to the response. So these figures are of messages.

Percentiles are those of the whole project (`emu.measure.percentile`). A percentile of few messages
is close to the slowest of them, so each figure says how many there were.
"""

from __future__ import annotations

import numpy as np

from emu.bmwg.kpi import TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.measure.percentile import percentiles
from emu.measure.requests import UNFINISHED, Column
from emu.report.run_view import RunFacts
from emu.words import counted


def _percentile(key: str, name: str, table: Table = Table.LATENCY) -> Kpi:
    return Kpi(
        f"latency_{key}",
        f"latency {name}",
        table,
        Unit.NS,
        f"{name} of the times from the post of a message, or the command of an I/O, to its end.",
        TRAIN,
    )


P99 = _percentile("p99", "P99", Table.PRIMARY)
SHARES = {
    _percentile("min", "minimum"): 0.0,
    _percentile("p50", "P50"): 0.5,
    _percentile("p95", "P95"): 0.95,
    P99: 0.99,
    _percentile("p999", "P99.9", Table.PRIMARY): 0.999,
    _percentile("max", "maximum"): 1.0,
}
MEAN = _percentile("mean", "mean")
KPIS = (*SHARES, MEAN)


def measured(trial: Trial) -> Measured:
    """The percentiles of each entry."""
    run = trial.run
    for name, entry in run.entries.items():
        took_ns, asked = latencies_ns(run, name)
        if run.spec.by_tcp(entry):
            reason = "TCP carries it as a stream, which has no messages"
            yield from (Undefined(kpi, reason, name) for kpi in KPIS)
        elif not asked:
            reason = "it is one job, whose messages have no times of their own; see its JCT"
            yield from (Undefined(kpi, reason, name) for kpi in KPIS)
        elif not len(took_ns):
            reason = f"none of its {counted(asked, 'message')} ended"
            yield from (Undefined(kpi, reason, name) for kpi in KPIS)
        else:
            yield from _figures(name, took_ns, asked)


def _figures(name: str, took_ns: Column, asked: int) -> Measured:
    unfinished = f", {asked - len(took_ns):,} unfinished" if asked > len(took_ns) else ""
    inputs = f"n {len(took_ns):,}{unfinished}"
    for kpi, value in zip(SHARES, percentiles(took_ns, [*SHARES.values()]), strict=True):
        yield Figure(kpi, value, name, inputs)
    yield Figure(MEAN, float(took_ns.mean()), name, inputs)


def latencies_ns(run: RunFacts, name: str) -> tuple[Column, int]:
    """The times of an entry's finished messages, I/Os or prompts, and how many were asked for."""
    requests = run.recording.requests
    if name not in requests.traffic:
        return np.empty(0, np.int64), 0
    own = (requests.of == requests.traffic.index(name)) & ~requests.are_parts
    over = own & (requests.end_ns != UNFINISHED)
    return requests.end_ns[over] - requests.start_ns[over], int(own.sum())
