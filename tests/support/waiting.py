"""Waiting for the effect of another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool]) -> None:
    """Waits until the condition holds. Fails after a minute: a loaded machine is slow."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)
