"""The progress line of a run, and lines that show the state of other work.

On a terminal, the line is redrawn in place. In a pipe or a log, one plain line is printed when the
run has ended. A run that takes long has a line every ten seconds there, and says when it ends: if
the bytes that are left take as long as those before them.

    incast  40%  3.2 of 8 MB  5 of 8 flows  emulated 260 us  drops 0  pauses 121
    wall 12 s  about 18 s left
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from emu.measure.run_progress import RunProgress
from emu.units import format_size, format_time_ns

SECONDS_BETWEEN_LINES = 10.0
"""In a pipe or a log."""
_SECONDS_BEFORE_FORECAST = 5.0


class StatusLine:
    """A context manager that shows one line while it is open, and removes it at the end.

    On a terminal, the line is redrawn in place; elsewhere it is printed from time to time, and at
    the end. Without a stream, nothing is shown. `clock` returns seconds of wall-clock time.
    """

    def __init__(
        self, stream: TextIO | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._stream = stream
        self._text: Callable[[], str] | None = None
        self._printed = clock()
        self._live: Live | None = None
        if stream is not None and stream.isatty():
            console = Console(file=stream, markup=False, emoji=False, highlight=False)
            self._live = Live(console=console, transient=True, auto_refresh=False)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._stream is not None and self._text is not None:
            print(self._text(), file=self._stream, flush=True)

    def show(self, text: Callable[[], str]) -> None:
        """Redraws the line. `text` makes it when it is drawn."""
        self._text = text
        now = self._clock()
        if self._live is not None:
            line = Text(text(), no_wrap=True, overflow="ellipsis")
            self._live.update(line, refresh=True)
        elif self._stream is not None and now - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = now
            print(text(), file=self._stream, flush=True)


class ProgressLine(StatusLine):
    """The line of one run."""

    def __init__(
        self, name: str, stream: TextIO | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream, clock=clock)
        self._name = name
        self._started = clock()
        self._first: tuple[float, RunProgress] | None = None

    def update(self, progress: RunProgress) -> None:
        """Redraws the line with this progress."""
        self._first = self._first or (self._clock(), progress)
        self.show(lambda: self._line(progress))

    def _line(self, progress: RunProgress) -> str:
        now = self._clock()
        line = progress_line(self._name, progress, wall_seconds=now - self._started)
        left = self._seconds_left(now, progress)
        return line if left is None else f"{line}  about {left:.0f} s left"

    def _seconds_left(self, now: float, progress: RunProgress) -> float | None:
        """None: the run has just begun, or is over."""
        if self._first is None:
            return None
        since, first = self._first
        done = share_done(progress) - share_done(first)
        if now - since < _SECONDS_BEFORE_FORECAST or done <= 0 or share_done(progress) >= 1:
            return None
        return (now - since) * (1 - share_done(progress)) / done


def share_done(progress: RunProgress) -> float:
    """The share of bytes delivered, from 0 to 1; 1 for a workload without bytes."""
    return progress.bytes_done / progress.bytes_total if progress.bytes_total else 1.0


def progress_line(name: str, progress: RunProgress, *, wall_seconds: float) -> str:
    """The line's text. Counts that the run does not have are left out."""
    events = [
        f"{what} {count:,}"
        for what, count in (("drops", progress.drops), ("pauses", progress.pauses))
        if count is not None
    ]
    return "  ".join(
        [
            name,
            f"{share_done(progress):.0%}",
            f"{format_size(progress.bytes_done)} of {format_size(progress.bytes_total)}",
            f"{progress.flows_done} of {progress.flows_total} flows",
            f"emulated {format_time_ns(progress.emulated_ns)}",
            *events,
            f"wall {wall_seconds:.1f} s",
        ]
    )
