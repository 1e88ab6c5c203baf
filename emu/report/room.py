"""The unused part of a cable while a flow ran.

It follows from the bytes that the cable's sending port sent between the samples around the flow's
start and end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from emu.measure.binning import growth
from emu.measure.records import FlowRecord
from emu.report.run_view import RunFacts
from topologies.graph import Port

FULL = 0.05
"""A cable is full when less than this part of it is free."""


def end_ns(run: RunFacts) -> int:
    """The time of the run's last sample."""
    times = run.recording.series.time_ns
    return max(int(times[-1]) if len(times) else 0, 1)


def life_ns(run: RunFacts, flow: FlowRecord) -> tuple[int, int]:
    """A flow's start and end; for an unfinished flow, the end of the run."""
    return flow.start_ns, max(flow.end_ns or end_ns(run), flow.start_ns + 1)


def room(run: RunFacts, flow: FlowRecord, port: Port) -> float:
    """The part of a port's cable that was unused while the flow ran; 0 without samples."""
    return float(rooms(run, flow, [port])[0])


def rooms(run: RunFacts, flow: FlowRecord, ports: Sequence[Port]) -> NDArray[np.float64]:
    """As `room`, for several ports."""
    columns = run.columns(ports)
    if columns is None:
        return np.zeros(len(ports))
    (start, end), series = life_ns(run, flow), run.recording.series
    sent_bytes = growth(series.time_ns, series.tx_bytes, start, end, columns)
    rates_bps = np.array([run.topology.cable[port].rate_bps for port in ports])
    free: NDArray[np.float64] = 1 - sent_bytes * 8e9 / rates_bps / (end - start)
    return free


def has_full_cable_on_path(run: RunFacts, flow: FlowRecord) -> bool:
    """Whether any cable between switches on the flow's paths was full."""
    hops = run.paths.stages(flow.bytes_from, flow.bytes_to)[1:-1]
    between = list(chain.from_iterable(hops))
    return bool(between) and float(rooms(run, flow, between).min()) < FULL


def held_ns(run: RunFacts, flow: FlowRecord, port: Port) -> float:
    """How long flow control held a port back while the flow ran."""
    columns = run.columns([port])
    return float(run.waited_ns(columns, *life_ns(run, flow))[0]) if columns else 0.0


def rate_bps(run: RunFacts, flow: FlowRecord) -> float:
    """The rate at which a flow delivered, from its start to its end or to the end of the run."""
    series = run.recording.series
    if flow.completed or flow.name not in run.sampled_flows:
        return flow.goodput_bps
    delivered = int(series.flow_bytes[-1, run.sampled_flows[flow.name]])
    return delivered * 8e9 / max(end_ns(run) - flow.start_ns, 1)
