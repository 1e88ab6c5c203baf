"""A fabric as read from any format: nodes and cables by name, as in a spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from emu.errors import SpecError

_NAME = re.compile("[A-Za-z][A-Za-z0-9_]{0,8}")
"""The names that a node may have in a spec."""


@dataclass(frozen=True)
class NetLink:
    """A cable. Rate and delay are as in a spec, and empty if the text does not give them."""

    a: str
    b: str
    rate: str = ""
    delay: str = ""


@dataclass(frozen=True)
class Net:
    """A fabric that was read."""

    switches: tuple[str, ...]
    hosts: tuple[str, ...]
    links: tuple[NetLink, ...]
    origin: Mapping[str, str]
    """Each node whose name is not that of the text -> its name in the text."""

    def section(self) -> str:
        """The `topology:` section of a spec. It is a valid spec by itself."""
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
    settings = {"rate": link.rate, "delay": link.delay}
    keys = "".join(f", {key}: {value}" for key, value in settings.items() if value)
    return f"    - {{between: [{link.a}, {link.b}]{keys}}}"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def names_for(wanted: Sequence[str], prefix: str, taken: set[str]) -> list[str]:
    """A valid name for each wanted one: the wanted name if possible, else prefix and number.

    The names are added to `taken`.
    """
    names = [_claim(name, taken) for name in wanted]
    free = (f"{prefix}{number}" for number in count(1))
    return [name or next(filter(None, (_claim(other, taken) for other in free))) for name in names]


def _claim(name: str, taken: set[str]) -> str:
    """Adds the name to `taken` and returns it; empty if it is taken already, or not valid."""
    if name in taken or _NAME.fullmatch(name) is None:
        return ""
    taken.add(name)
    return name


class Lines:
    """The lines of a text, and all mistakes in them, which are reported together."""

    def __init__(self, text: str, source: str) -> None:
        self.lines = text.splitlines()
        self._source = source
        self._findings: list[tuple[int, str]] = []

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Each line with its number, from 1, without leading and trailing blanks."""
        return ((number, line.strip()) for number, line in enumerate(self.lines, start=1))

    def wrong(self, line: int, what: str) -> None:
        """Notes a mistake in a line, and the remedy."""
        self._findings.append((line, what))

    def understood(self, line: int, parse: Callable[[], str]) -> str:
        """The result of `parse`, or an empty text if it raises ValueError, which is noted."""
        try:
            return parse()
        except ValueError as error:
            self.wrong(line, str(error))
            return ""

    def check(self) -> None:
        """Raises SpecError if any mistakes were noted."""
        if self._findings:
            raise SpecError(
                [f"{self._source}:{line}:1: {what}" for line, what in sorted(self._findings)]
            )
