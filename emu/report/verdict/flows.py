"""Checks of flows from their start to their end.

completed  whether every flow finished
goodput    of one flow
finish     when a flow, or the last flow of a traffic entry, finished
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.measure.recording import Recording
from emu.measure.records import FlowRecord
from emu.report.verdict.outcome import Outcome
from emu.spec.model import Finish, Goodput
from emu.units import PS_PER_NS, format_rate, format_time_ns
from emu.words import shortened

_MOST_NAMED = 8


def completed(check: None, run: Recording) -> Outcome:
    unfinished = [flow.name for flow in run.flows if not flow.completed]
    if not unfinished:
        return Outcome(True, f"all {len(run.flows):,} completed")
    named = shortened(unfinished, _MOST_NAMED)
    return Outcome(False, f"{len(unfinished):,} of {len(run.flows):,} unfinished: {named}")


def goodput(check: Goodput, run: Recording) -> Outcome:
    flows = [flow for flow in run.flows if flow.name == check.flow]
    why_not = _unfinished(check.flow, flows)
    if why_not:
        return Outcome(False, why_not)
    measured = flows[0].goodput_bps
    return Outcome(check.allow(measured, run.clock), format_rate(measured))


def finish(check: Finish, run: Recording) -> Outcome:
    flows = [
        flow for flow in run.flows if check.subject == (flow.name if check.flow else flow.traffic)
    ]
    why_not = _unfinished(check.subject, flows)
    if why_not:
        return Outcome(False, why_not)
    last_ns = max(flow.end_ns or 0 for flow in flows)
    return Outcome(last_ns * PS_PER_NS <= check.by_ps, f"finished at {format_time_ns(last_ns)}")


def _unfinished(subject: str, flows: Sequence[FlowRecord]) -> str:
    """Why these flows cannot be measured; empty when they can."""
    if not flows:
        return f"no flow of this run is called {subject}"
    left = [flow.name for flow in flows if not flow.completed or flow.end_ns is None]
    return f"unfinished: {shortened(left, _MOST_NAMED)}" if left else ""
