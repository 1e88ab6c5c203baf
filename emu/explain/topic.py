"""One thing that can be explained, whatever kind it is of."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    kind: str
    """`key`, `preset`, `counter`, `diagnosis` or `field`."""
    name: str
    facts: tuple[str, ...]
    """A paragraph each, the meaning first."""
    below: tuple[tuple[str, str], ...] = ()
    """What is inside of it: names, and what each means in a line."""


def first_sentence(text: str) -> str:
    """Of a meaning, for a list."""
    return _END.split(text, maxsplit=1)[0]


_END = re.compile(r"(?<=\.)(?<!e\.g\.)\s(?=[A-Z`0-9])")
