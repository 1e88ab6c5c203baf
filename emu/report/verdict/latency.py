"""The check of how long requests took."""

from __future__ import annotations

from emu.measure.percentile import percentile
from emu.measure.recording import Recording
from emu.measure.requests import UNFINISHED
from emu.report.verdict.outcome import Outcome
from emu.spec.model import LatencyBounds
from emu.units import PS_PER_NS, format_time_ns
from traffic.graph import Asks


def latency(check: LatencyBounds, run: Recording) -> Outcome:
    """Judges the percentile. The check fails if a request is unfinished, whatever the bound."""
    requests = run.requests
    if check.traffic not in requests.traffic:
        return Outcome(False, f"{check.traffic} has no requests of its own")
    own = requests.of == requests.traffic.index(check.traffic)
    own &= requests.asks == Asks[check.way.upper()] if check.way else ~requests.are_parts
    if not own.any():
        return Outcome(False, f"{check.traffic} has no {check.way}s")
    start_ns, end_ns = requests.start_ns[own], requests.end_ns[own]
    unfinished = int((end_ns == UNFINISHED).sum())
    if unfinished:
        return Outcome(False, f"{unfinished} of {len(end_ns)} are unfinished")
    took_ns = percentile(end_ns - start_ns, check.percent / 100)
    measured = f"{format_time_ns(took_ns)}, n {len(end_ns):,}"
    return Outcome(check.allow(took_ns * PS_PER_NS, run.clock), measured)
