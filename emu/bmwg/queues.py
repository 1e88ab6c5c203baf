"""Queue depth: P95 and maximum of the egress queues of switch ports, in bytes.

The maximum is a counter and exact. P95 is of samples during the trial, all classes of a port
together; the spec's `sample_interval` says how far apart they are. For the fabric, each figure is
that of the port where it is highest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from emu.bmwg.kpi import TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.measure.percentile import percentile

P95 = Kpi(
    "queue_depth_p95",
    "queue depth, P95",
    Table.SECONDARY,
    Unit.BYTES,
    "95th percentile of a switch port's egress queue; of the fabric, the highest.",
    TRAIN,
    by="port",
    leaves_out_zeros=True,
)
MAX = Kpi(
    "queue_depth_max",
    "queue depth, maximum",
    Table.SECONDARY,
    Unit.BYTES,
    "The deepest that a switch port's egress queue was; of the fabric, the highest.",
    TRAIN,
    by="port",
    leaves_out_zeros=True,
)
KPIS = (P95, MAX)


def measured(trial: Trial) -> Measured:
    """Both figures, of the fabric and of each switch port that had a queue."""
    peaks = {
        port: own.get("queue_peak_bytes", 0) for port, own in trial.run.recording.ports.items()
    }
    p95 = _p95_of_samples(trial, [*peaks])
    yield from _highest_and_each(P95, p95, "the run has no samples of queues")
    yield from _highest_and_each(MAX, peaks, "no switch port has counters")


def _highest_and_each(kpi: Kpi, depths: Mapping[str, float], why_none: str) -> Measured:
    if not depths:
        yield Undefined(kpi, why_none)
        return
    deepest = max(depths, key=depths.__getitem__)
    yield Figure(kpi, depths[deepest], detail=deepest)
    for port, depth in depths.items():
        if depth:
            yield Figure(kpi, depth, port)


def _p95_of_samples(trial: Trial, ports: list[str]) -> dict[str, float]:
    """Switch port -> P95 of its samples in the trial."""
    series, (start, end) = trial.run.recording.series, trial.window_ns
    during = np.flatnonzero((series.time_ns >= start) & (series.time_ns <= end))
    if not len(during):
        return {}
    sampled = trial.run.sampled
    queues = series.queue_bytes[during]
    return {port: percentile(queues[:, sampled[port]], 0.95) for port in ports if port in sampled}
