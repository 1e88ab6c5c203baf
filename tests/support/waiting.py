"""Waiting for the effect of another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1


def eventually(holds: Callable[[], bool]) -> None:
    """Waits until the condition holds, and looks ever less often: a look may be a command that
    takes a tenth of a second of the processor. Fails after a minute: a loaded machine is slow."""
    end = time.monotonic() + 60
    pause = _FIRST_PAUSE
    while not holds():
        assert time.monotonic() < end
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)
