"""The progress of a run whose results so far can be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emu.measure.recording import Recording
from emu.measure.run_progress import RunProgress


@dataclass(frozen=True, kw_only=True)
class LiveProgress(RunProgress):
    """A moment of a run of this process, which stands still meanwhile."""

    so_far: Callable[[Path], Recording]
    """The recording up to now, with captures in a folder."""
