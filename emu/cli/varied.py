"""What commands read from their words: keys with values, `--vary KEY=VALUES`, and all mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from emu.errors import SpecError, UsageError

if TYPE_CHECKING:
    from emu.sweeps.values import Span

T = TypeVar("T")


class Reading:
    """Reads a command's words, each by a function, and raises the mistakes of all at the end."""

    def __init__(self) -> None:
        self._mistakes: list[UsageError | SpecError] = []

    def of(self, read: Callable[[], T]) -> T:
        """What the function reads. After a mistake it is None, which nobody sees: `end` raises."""
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
    found, mistakes = [], []
    for text in texts:
        try:
            found.append(read(text))
        except UsageError as mistake:
            mistakes.append(str(mistake))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return found


def varied(texts: tuple[str, ...]) -> dict[str, Sequence[Any] | Span | None]:
    """The keys of all --vary with their values. Raises UsageError."""
    pairs = all_read(_values, texts)
    keys = [key for key, _ in pairs]
    twice = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if twice:
        raise UsageError("\n".join(f"--vary {key}: is given twice; keep one" for key in twice))
    return dict(pairs)


def _values(text: str) -> tuple[str, Sequence[Any] | Span | None]:
    """The key and its values in `KEY` or `KEY=VALUES`."""
    from emu.sweeps.values import axis_of

    if "=" not in text:
        return text, None
    axis = axis_of(text)
    return axis.key, axis.values
