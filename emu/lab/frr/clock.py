"""The clock of FRR's daemons: the machine's, or one that can be slowed down while they run.

In a lab on the real clock, emulated time passes `slowdown` times slower than the machine's. A BGP
that waits 75 ms there must wait 75 ms of emulated time. libfaketime gives the daemons such a clock.
At each look at it, it reads a file with the rate and a time of day. When the file has changed, the
clock goes on from that time: the present, so that no timer ends too early or too late.

What the kernel measures stays the machine's: TCP's retransmission timers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from emu.lab.emulated_time import library


class MachineClock:
    """The clock of the machine."""

    variables: Mapping[str, str] = {}
    """What a daemon's environment has for it."""


class DaemonClock(MachineClock):
    """A clock that is as fast as the machine's until it is slowed down."""

    def __init__(self, file: Path) -> None:
        """`file`: where its rate is kept. Raises HostError without libfaketime."""
        self._file = file
        self.variables = {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "TZ": "UTC",
        }
        self._write("+0 x1")

    def slow_down(self, slowdown: float) -> None:
        """From now on the clock is `slowdown` times slower than the machine's."""
        self._write(f"@{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} x{1 / slowdown:.12g}")

    def _write(self, line: str) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{line}\n")
        new.replace(self._file)  # no daemon reads half a line
