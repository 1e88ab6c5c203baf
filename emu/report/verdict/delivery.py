"""Checks of the bytes that flows delivered in a window of the run.

rate      of a flow, or of a traffic entry
fairness  of the flows of a traffic entry
share     of a flow in its traffic entry
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emu.measure.binning import growth
from emu.measure.fairness import jain_index
from emu.measure.recording import Recording
from emu.report.verdict.outcome import Outcome
from emu.report.verdict.window import window_ns
from emu.spec.model import DeliveryRate, Fairness, Share
from emu.units import format_rate

Bytes = NDArray[np.float64]


def rate(check: DeliveryRate, run: Recording) -> Outcome:
    start_ns, end_ns = window_ns(check, run)
    delivered = _delivered(check, run, {check.flow} if check.flow else _flows(check.traffic, run))
    measured = float(delivered.sum()) * 8e9 / (end_ns - start_ns)
    return Outcome(check.allow(measured, run.clock), format_rate(measured))


def fairness(check: Fairness, run: Recording) -> Outcome:
    delivered = _delivered(check, run, _flows(check.traffic, run))
    index = jain_index(delivered)
    if index is None:
        return Outcome(False, "nothing was delivered")
    return Outcome(check.allow(index, run.clock), f"{index:.3f}")


def share(check: Share, run: Recording) -> Outcome:
    everything = float(_delivered(check, run, _flows(check.traffic, run)).sum())
    if not everything:
        return Outcome(False, "nothing was delivered")
    part = float(_delivered(check, run, {check.flow}).sum()) / everything
    return Outcome(check.allow(part, run.clock), f"{100 * part:.2f} %")


def _flows(traffic: str | None, run: Recording) -> set[str]:
    return {flow.name for flow in run.flows if flow.traffic == traffic}


def _delivered(check: DeliveryRate | Fairness | Share, run: Recording, names: set[str]) -> Bytes:
    """(k,): the bytes that each of these flows delivered in the window."""
    series = run.series
    columns = [column for column, name in enumerate(series.flows) if name in names]
    return growth(series.time_ns, series.flow_bytes[:, columns], *window_ns(check, run))
