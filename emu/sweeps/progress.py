"""The line on stderr while a sweep goes on.

ecn  40 %  30 of 75 runs  10 read from the folder  1 failed  6.1 runs/s  about 7 s left
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from emu.report.progress import StatusLine

_LEAST_RUNS, _LEAST_SECONDS = 3, 0.5
"""Before the first rate. Runs that are read from the folder come at once."""


class SweepLine(StatusLine):
    """The line of a sweep."""

    def __init__(
        self,
        name: str,
        total: int,
        kept: int,
        stream: TextIO | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`total`: all runs; `kept`: those that need not be done again."""
        super().__init__(stream, clock=clock)
        self._name = name
        self._total = total
        self._kept = kept
        self._done = 0
        self._failed = 0
        self._first: float | None = None

    def add(self, *, failed: bool) -> None:
        """A run has ended."""
        self._done += 1
        self._failed += failed
        self._first = self._first or self._clock()
        self.show(self._line)

    def _line(self) -> str:
        done = self._kept + self._done
        parts = [self._name, f"{done / self._total:.0%}", f"{done:,} of {self._total:,} runs"]
        if self._kept:
            parts.append(f"{self._kept:,} read from the folder")
        if self._failed:
            parts.append(f"{self._failed:,} failed")
        return "  ".join([*parts, *self._forecast(self._total - done)])

    def _forecast(self, left: int) -> list[str]:
        """The rate since the first run ended, and how long the runs that are left take at it."""
        if self._first is None or self._done < _LEAST_RUNS:
            return []
        seconds = self._clock() - self._first
        if seconds < _LEAST_SECONDS:
            return []
        rate = (self._done - 1) / seconds
        forecast = [f"about {left / rate:.0f} s left"] if left else []
        return [f"{rate:.3g} runs/s", *forecast]
