"""The clock of FRR's daemons: the machine's, or one that can be slowed down while they run.

In a lab on the real clock, emulated time passes `slowdown` times slower than the machine's. A BGP
that waits 75 ms there must wait 75 ms of emulated time. libfaketime gives the daemons such a clock,
and reads its rate from a file at each look at the clock. The clock goes on where it is when the
rate changes (FAKETIME_XRESET), so that no timer ends too early or too late.

What the kernel measures stays the machine's: TCP's retransmission timers.
"""

from __future__ import annotations

from collections.abc import Mapping
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
            "FAKETIME_XRESET": "1",
        }
        self._set_rate(1)

    def slow_down(self, slowdown: float) -> None:
        """From now on the clock is `slowdown` times slower than the machine's."""
        self._set_rate(1 / slowdown)

    def _set_rate(self, rate: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"+0 x{rate:.12g}\n")
        new.replace(self._file)  # no daemon reads half a line
