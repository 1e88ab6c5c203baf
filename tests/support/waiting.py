"""Waiting for what a program of its own does in its time."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool]) -> None:
    """Within ten seconds, or the test fails."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)
