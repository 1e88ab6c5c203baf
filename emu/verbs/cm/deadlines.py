"""When something is due, for many that seldom have anything due."""

from __future__ import annotations

from collections.abc import Callable, Hashable

Act = Callable[[int], None]
"""Does what is due at the present time, in picoseconds."""


class Deadlines:
    """By key. Few are set at a time, and the earliest is asked for often."""

    def __init__(self) -> None:
        self._due: dict[Hashable, tuple[int, Act]] = {}
        self.earliest_ps: int | None = None

    def set(self, key: Hashable, at_ps: int | None, act: Act) -> None:
        """`act` is called once, by `expire`, not before that time. None: it is not."""
        self._due.pop(key, None)
        if at_ps is not None:
            self._due[key] = at_ps, act
        self.earliest_ps = min((at for at, _ in self._due.values()), default=None)

    def expire(self, now_ps: int) -> None:
        """Does all that is due."""
        due = {key: act for key, (at, act) in self._due.items() if at <= now_ps}
        for key in due:
            self.set(key, None, due[key])
        for act in due.values():
            act(now_ps)
