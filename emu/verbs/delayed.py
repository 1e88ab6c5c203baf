"""Work that waits until queue pairs have sent their responses.

A program reacts to what it receives in no emulated time. A real NIC has sent its acknowledgement
before any program can react, so a queue pair must not end before it has done so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_LONGEST_PS = 10_000_000
"""A pause may hold a response back for as long as it likes."""


@dataclass(frozen=True)
class _Delayed:
    until_ps: int
    """Then it waits no longer."""
    must_wait: Callable[[], bool]
    work: Callable[[], None]


class DelayedWork:
    """Work that waits for responses."""

    def __init__(self) -> None:
        self._waiting: list[_Delayed] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, now_ps: int, must_wait: Callable[[], bool], work: Callable[[], None]) -> None:
        """Does the work now or, if it must wait, later."""
        if must_wait():
            self._waiting.append(_Delayed(now_ps + _LONGEST_PS, must_wait, work))
        else:
            work()

    def carry_out(self, now_ps: int) -> None:
        """Does the work that need not wait any longer."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if one.must_wait() and now_ps < one.until_ps:
                self._waiting.append(one)
            else:
                one.work()
