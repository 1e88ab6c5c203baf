"""What a run has recorded so far, written while it goes on.

A run that is killed leaves the last of these: summary, samples and captures as a whole run writes
them, with `partial: true`. The whole run replaces them at its end. Each file is written beside its
place and then takes it, so that none is half-written.

A large recording takes seconds to write. So the time to the next one is at least thirty seconds,
and twenty times what the last one took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from emu.measure.live_progress import LiveProgress
from emu.measure.run_progress import RunProgress
from emu.output_dir import writing_into
from emu.report.store import save_recording

LEAST_SECONDS = 30.0
_SHARE_OF_TIME = 1 / 20


class PartWriter:
    """Writes the recording so far into a folder from time to time."""

    def __init__(self, out: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds of wall-clock time."""
        self._out = out
        self._clock = clock
        self._next = clock() + LEAST_SECONDS

    def update(self, progress: RunProgress) -> None:
        """Writes it if the run can tell it and it is time. Raises EmuError."""
        began = self._clock()
        if not isinstance(progress, LiveProgress) or began < self._next:
            return
        with writing_into(self._out):
            save_recording(progress.so_far(self._out), self._out)
        ended = self._clock()
        self._next = ended + max(LEAST_SECONDS, (ended - began) / _SHARE_OF_TIME)
