"""What any format tells of a fabric: nodes and cables by name, as a spec's section has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from emu.errors import SpecError

_NAME = re.compile("[A-Za-z][A-Za-z0-9_]{0,8}")
"""What a node may be called in a spec."""


@dataclass(frozen=True)
class NetLink:
    """A cable. Rate and delay are written as in a spec; empty: the text does not tell."""

    a: str
    b: str
    rate: str = ""
    delay: str = ""


@dataclass(frozen=True)
class Net:
    """A fabric as it was read."""

    switches: tuple[str, ...]
    hosts: tuple[str, ...]
    links: tuple[NetLink, ...]
    origin: Mapping[str, str]
    """Of each node that is called otherwise here: what the text calls it."""

    def section(self) -> str:
        """The `topology:` section of a spec, which is a whole spec already."""
        origins = [f"# {name}: {_printable(origin)}" for name, origin in self.origin.items()]
        lines = [
            *origins,
            "topology:",
            "  kind: graph",
            f"  switches: [{', '.join(self.switches)}]",
            f"  hosts: [{', '.join(self.hosts)}]",
            "  links:",
            *map(_link, self.links),
        ]
        return "\n".join(lines) + "\n"


def _link(link: NetLink) -> str:
    told = {"rate": link.rate, "delay": link.delay}
    keys = "".join(f", {key}: {value}" for key, value in told.items() if value)
    return f"    - {{between: [{link.a}, {link.b}]{keys}}}"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def names_for(wanted: Sequence[str], prefix: str, taken: set[str]) -> list[str]:
    """A legal name for each that is wanted: itself where that will do, else prefix and number.

    What is given out is put among the `taken`.
    """
    names = [_claim(name, taken) for name in wanted]
    free = (f"{prefix}{number}" for number in count(1))
    return [name or next(filter(None, (_claim(other, taken) for other in free))) for name in names]


def _claim(name: str, taken: set[str]) -> str:
    """The name, which is taken from now on; empty if it was, or is none."""
    if name in taken or _NAME.fullmatch(name) is None:
        return ""
    taken.add(name)
    return name


class Lines:
    """The lines of a text, and what is wrong with them: all of it is told at once."""

    def __init__(self, text: str, source: str) -> None:
        self.lines = text.splitlines()
        self._source = source
        self._findings: list[tuple[int, str]] = []

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Each line with its number, from 1, without blanks around it."""
        return ((number, line.strip()) for number, line in enumerate(self.lines, start=1))

    def wrong(self, line: int, what: str) -> None:
        """Notes what is wrong with a line, and what to do."""
        self._findings.append((line, what))

    def understood(self, line: int, parse: Callable[[], str]) -> str:
        """What `parse` makes of a part of a line; empty, and noted, where it raises ValueError."""
        try:
            return parse()
        except ValueError as error:
            self.wrong(line, str(error))
            return ""

    def check(self) -> None:
        """Raises SpecError when anything was wrong."""
        if self._findings:
            raise SpecError(
                [f"{self._source}:{line}:1: {what}" for line, what in sorted(self._findings)]
            )
