"""The table of programs in docs/guide/verbs-programs.md: what each printed, on which fabric and
clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.user import ROOT

PAGE = ROOT / "docs/guide/verbs-programs.md"
_ROW = re.compile(r"^\| `(.+)` \| (RoCE|InfiniBand) \| (exact|real) \| (.+) \|$")
_FIGURE = re.compile(r"^([\d.]+) (MB/s|µs)$")
_OF_PINGPONG = re.compile(r"([\d.]+) usec/iter")


@dataclass(frozen=True)
class Row:
    """A program that runs as server on one host, and as client on another."""

    command: str
    fabric: str
    clock: str
    printed: str

    @property
    def program(self) -> str:
        return self.command.split()[0]

    @property
    def figure(self) -> float | None:
        """MB/s, or microseconds. None: the row says something else."""
        found = _FIGURE.match(self.printed)
        return float(found[1]) if found else None

    def words(self) -> list[str]:
        """The command, which does not check the processor's clock rate (perftest's -F)."""
        is_perftest = self.program.startswith("ib_")
        return [*self.command.split(), *(["-F"] if is_perftest else [])]


def rows() -> Iterator[Row]:
    """All rows of the page."""
    for line in PAGE.read_text().splitlines():
        if found := _ROW.match(line):
            yield Row(*found.groups())


def figure_in(output: str) -> float:
    """The average bandwidth in MB/s, or the typical time in microseconds, that a client prints.
    perftest's table has one line of numbers."""
    if found := _OF_PINGPONG.search(output):
        return float(found[1])
    columns, numbers = _table_in(output)
    name = "t_typical[usec]" if "t_typical[usec]" in columns else "BW average[MB/sec]"
    return float(numbers[columns.index(name)])


def _table_in(output: str) -> tuple[list[str], list[str]]:
    lines = output.splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.lstrip().startswith("#bytes"))
    columns = re.split(r"\s{2,}|(?<=\])\s+|(?<=bytes)\s+", lines[at].strip())
    return columns, lines[at + 1].split()
