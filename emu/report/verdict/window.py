"""The part of a run that a check looks at."""

from __future__ import annotations

from emu.measure.recording import Recording
from emu.spec.model import Window
from emu.units import PS_PER_NS


def window_ns(window: Window, run: Recording) -> tuple[int, int]:
    """From when to when; to the last sample where the check does not say, and never empty."""
    times = run.series.time_ns
    start = window.after_ps // PS_PER_NS
    end = int(times[-1]) if len(times) else start
    if window.until_ps is not None:
        end = window.until_ps // PS_PER_NS
    return start, max(end, start + 1)
