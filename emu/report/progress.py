"""The line that says how a run is getting on.

On a terminal one line is drawn over and over. Anywhere else it would fill a log
with itself, so there it is a plain line at every tenth of the work.

    incast  40%  3.2 of 8 MB  5 of 8 flows  emulated 260 us  drops 0  pauses 121  wall 0.4 s
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from emu.measure.progress import Progress
from emu.units import format_size, format_time_ns

PLAIN_STEPS = 10
"""Lines that a whole run writes where there is no terminal."""


class ProgressLine:
    """A context: the line is there while it is open, and gone from the terminal afterwards.

    `clock` returns seconds of wall time.
    """

    def __init__(
        self, name: str, stream: TextIO, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._clock = clock
        self._started = clock()
        self._steps_told = 0
        self._console = Console(file=stream, markup=False, emoji=False, highlight=False)
        self._live: Live | None = None
        if self._console.is_terminal:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)

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

    def update(self, progress: Progress) -> None:
        """Shows this moment of the run."""
        line = progress_line(self._name, progress, wall_seconds=self._clock() - self._started)
        if self._live is not None:
            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)
            return
        steps = int(share_done(progress) * PLAIN_STEPS)
        if steps > self._steps_told:
            self._steps_told = steps
            self._console.print(line, soft_wrap=True)


def share_done(progress: Progress) -> float:
    """From 0 to 1, by bytes; a workload without bytes is done."""
    return progress.bytes_done / progress.bytes_total if progress.bytes_total else 1.0


def progress_line(name: str, progress: Progress, *, wall_seconds: float) -> str:
    """The line's text. What the run does not count is not in it."""
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
