"""Reading the words of a command so that all mistakes are raised at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from emu.errors import SpecError, UsageError

T = TypeVar("T")


class Reading:
    """Calls functions that read, and raises the mistakes of all of them at its end."""

    def __init__(self) -> None:
        self._mistakes: list[UsageError | SpecError] = []

    def of(self, read: Callable[[], T]) -> T:
        """What the function reads. After a mistake this is None, but then `end` raises."""
        try:
            return read()
        except (UsageError, SpecError) as mistake:
            self._mistakes.append(mistake)
            return cast("T", None)

    def end(self) -> None:
        """Raises UsageError or SpecError if there were mistakes."""
        if len(self._mistakes) == 1:
            raise self._mistakes[0]
        if self._mistakes:
            raise UsageError("\n".join(map(str, self._mistakes)))


def all_read(read: Callable[[str], T], texts: Iterable[str]) -> list[T]:
    """What all texts say. Raises UsageError with the mistakes of all."""
    reading = Reading()
    found = [reading.of(lambda text=text: read(text)) for text in texts]  # type: ignore[misc]
    reading.end()
    return found
