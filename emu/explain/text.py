"""Topics as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from emu.explain.in_force import Value
from emu.explain.topic import Topic

_INDENT = "  "


def lines_of(topics: Sequence[Topic], width: int) -> Iterator[str]:
    """The topics with their entries, separated by blank lines."""
    for number, topic in enumerate(topics):
        if number:
            yield ""
        yield from _wrapped(topic.name, width, "", _INDENT)
        for fact in topic.facts:
            yield from _wrapped(fact, width, _INDENT, _INDENT)
        if topic.below:
            yield ""
            yield from _table(topic.below, width)


def lines_of_values(values: Sequence[Value], spec: str) -> Iterator[str]:
    """The values in force in a spec, in columns."""
    yield f"In force in {spec}:"
    for row in _columns([(v.key, v.value, v.where, v.origin) for v in values]):
        yield f"{_INDENT}{row}"


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width)
        yield "  ".join(cells).rstrip()


def _table(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Names in one column and meanings in the next; the meaning of a long name is below it."""
    column = min(max(len(name) for name, _ in rows), width // 3)
    for name, meaning in rows:
        beside = " " * (len(_INDENT) + column + 2)
        head = f"{_INDENT}{name:<{column}}  "
        if len(name) > column:
            yield head.rstrip()
            head = beside
        yield from _wrapped(meaning, width, head, beside) if meaning else [head.rstrip()]


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
