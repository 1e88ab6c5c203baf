"""Queue depth: P95 and maximum of the egress queues of switch ports, in bytes.

P95 is of samples during the trial, all queues of a port together; the spec's `sample_interval` says
how far apart they are. The maximum is that of the samples, or of the port's deepest queue, which a
counter has exactly, whichever is more. So it is exact for ports that use one queue. For the fabric,
each figure is that of the port where it is highest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

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
    counted = {
        port: own.get("queue_peak_bytes", 0) for port, own in trial.run.recording.ports.items()
    }
    sampled = _sampled(trial, [*counted])
    p95 = {port: percentile(depths, 0.95) for port, depths in sampled.items()}
    peaks = {
        port: max(peak, int(sampled[port].max()) if port in sampled else 0)
        for port, peak in counted.items()
    }
    yield from _highest_and_each(P95, p95, "the run has no samples of queues")
    yield from _highest_and_each(MAX, peaks, "no switch port has counters")


def _highest_and_each(kpi: Kpi, depths: Mapping[str, float], why_none: str) -> Measured:
    if not depths:
        yield Undefined(kpi, why_none)
        return
    deepest = max(depths, key=depths.__getitem__)
    yield Figure(kpi, depths[deepest], detail=deepest if depths[deepest] else "")
    for port, depth in depths.items():
        if depth:
            yield Figure(kpi, depth, port)


def _sampled(trial: Trial, ports: list[str]) -> dict[str, NDArray[np.int64]]:
    """Switch port -> the depths of its samples in the trial."""
    series, (start, end) = trial.run.recording.series, trial.window_ns
    during = np.flatnonzero((series.time_ns >= start) & (series.time_ns <= end))
    if not len(during):
        return {}
    columns, queues = trial.run.sampled, series.queue_bytes[during]
    return {port: queues[:, columns[port]] for port in ports if port in columns}
