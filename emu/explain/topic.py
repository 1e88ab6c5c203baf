"""One topic of `emu explain`, of any kind."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    kind: str
    """`key`, `preset`, `counter`, `diagnosis` or `field`."""
    name: str
    facts: tuple[str, ...]
    """The paragraphs, the meaning first."""
    below: tuple[tuple[str, str], ...] = ()
    """The names of its entries, each with its meaning in a line."""


def first_sentence(text: str) -> str:
    """The first sentence of a meaning, for a list."""
    return _END.split(text, maxsplit=1)[0]


_END = re.compile(r"(?<=\.)(?<!e\.g\.)\s(?=[A-Z`0-9])")
