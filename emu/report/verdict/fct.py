"""The check of FCT slowdown: the time of messages as a multiple of their time on idle paths."""

from __future__ import annotations

import numpy as np

from emu.measure.fct import slowdowns
from emu.measure.percentile import percentile
from emu.measure.recording import Recording
from emu.report.verdict.outcome import Outcome
from emu.spec.model import FctSlowdownBounds


def fct_slowdown(check: FctSlowdownBounds, run: Recording) -> Outcome:
    """Judges the percentile. The check fails if a message is unfinished, whatever the bound."""
    requests = run.requests
    own = requests.carries > check.above_bytes
    if check.up_to_bytes is not None:
        own &= requests.carries <= check.up_to_bytes
    found = slowdowns(requests, check.traffic, own)
    unfinished = int(np.isnan(found).sum())
    if unfinished:
        return Outcome(False, f"{unfinished} of {len(found)} are unfinished")
    if not len(found):
        return Outcome(False, f"{check.traffic} has no messages{check.sizes}")
    measured = percentile(found, check.percent / 100)
    return Outcome(check.allow(measured, run.clock), f"{measured:.2f}, n {len(found):,}")
