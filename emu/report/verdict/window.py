"""The part of a run that a check looks at."""

from __future__ import annotations

from emu.measure.recording import Recording
from emu.spec.model import Window
from emu.units import PS_PER_NS


def window_ns(window: Window, run: Recording) -> tuple[int, int]:
    """The start and end of the window, which is never empty. Without `until`, it ends with the last
    sample."""
    times = run.series.time_ns
    start = window.after_ps // PS_PER_NS
    end = int(times[-1]) if len(times) else start
    if window.until_ps is not None:
        end = window.until_ps // PS_PER_NS
    return start, max(end, start + 1)
