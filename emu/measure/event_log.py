"""What happened in a recorded run, in order: flows, faults, sweeps, deadlocks, ports held back.

A port's samples hold the total time that pauses or missing credit have held it back. One event
covers all successive samples in which that total grows. Its time is that of the first of them; its
duration is the growth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from emu.measure.recording import Recording
from emu.measure.snapshot_diff import Event


def happened(run: Recording) -> list[Event]:
    """All events by time. Events of the same time keep the order of the recording."""
    events = (*_flows(run), *_faults(run), *_of_the_fabric(run), *_held_back(run))
    return sorted(events, key=lambda event: event.time_ns)


def _flows(run: Recording) -> Iterator[Event]:
    for flow in run.flows:
        values = {"src": flow.src, "dst": flow.dst, "bytes": flow.bytes}
        yield Event(flow.start_ns, "flow-started", flow.name, values)
        if flow.end_ns is not None and flow.completed:
            yield Event(flow.end_ns, "flow-completed", flow.name, values)


def _faults(run: Recording) -> Iterator[Event]:
    for fault in run.faults:
        values = {"kind": fault.kind, "place": fault.place}
        yield Event(fault.at_ns, "fault-began", fault.name, values)
        if fault.end_ns is not None:
            yield Event(fault.end_ns, "fault-over", fault.name, {**values, "hits": fault.hits})


def _of_the_fabric(run: Recording) -> Iterator[Event]:
    for sweep in run.sweeps:
        yield Event(sweep.in_force_ns, "routed-anew", "", {"change_ns": sweep.at_ns})
    for deadlock in run.deadlocks:
        values = {"priority": deadlock.priority, "ports": " ".join(deadlock.ports)}
        yield Event(deadlock.found_ns, "deadlock", "", values)


def _held_back(run: Recording) -> Iterator[Event]:
    series = run.series
    for name, held_ns in (
        ("paused", series.paused_ns),
        ("waited-for-credit", series.credit_wait_ns),
    ):
        for port, column in zip(series.ports, held_ns.T, strict=True):
            for time_ns, ns in _spells(series.time_ns, column):
                yield Event(time_ns, name, port, {"ns": ns})


def _spells(times: NDArray[np.int64], held_ns: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Each start of a growth, and how much the value grew until it stopped."""
    grows = np.diff(held_ns, prepend=0) > 0
    turns = np.flatnonzero(np.diff(grows, prepend=False, append=False))
    total = np.concatenate(([0], held_ns))
    for first, end in turns.reshape(-1, 2):
        yield int(times[first]), int(total[end] - total[first])
