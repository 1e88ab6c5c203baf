"""Keys with values on the command line: `--vary KEY=VALUES`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emu.cli.reading import all_read
from emu.errors import UsageError

if TYPE_CHECKING:
    from emu.sweeps.values import Span


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
