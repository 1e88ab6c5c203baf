"""GOAL's text, the input of LogGOPSim (Hoefler, Siebert, Lumsdaine, ICPP 2009).

    num_ranks 2
    rank 0 {
    l1: calc 100 cpu 0
    l2: send 10b to 1 tag 5
    l2 requires l1
    }
    rank 1 {
    l1: recv 10b from 0 tag 5
    }

`calc` takes nanoseconds, and sizes are in bytes. With `requires` the other step must be over, with
`irequires` it must have begun. Labels, tags (0 by default), `cpu` and `nic` may be left out.
`cpu` and `nic` are the busy processor or NIC of the rank in LogGOPSim; they are ignored here.
Comments are `// ...` and `/* ... */`. A receive from any rank or with any tag (-1) depends on the
order of arrival, which a graph of operations cannot express, so it is refused.

`goal_binary` has the binary form of the same.

An error message names a line that is not understood only by its number. The file may be another one
than the user meant, and a message must not show its contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from traffic.traces.trace import Does, Step, Trace, TraceError

ANY = -1
"""A receive from any rank, or with any tag."""
_DIGITS = 18
"""The most digits of a number."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_RANKS = re.compile(r"num_ranks\s+(\d+)")
_OPEN = re.compile(r"rank\s+(\d+)\s*\{")
_LABEL = r"(?:([A-Za-z]\w*)\s*:\s*)?"
_PLACE = r"(?:\s+cpu\s+\d+)?(?:\s+nic\s+\d+)?"
_MESSAGE = re.compile(
    rf"{_LABEL}(send|recv)\s+(\d+)\s*b\s+(to|from)\s+(-?\d+)(?:\s+tag\s+(-?\d+))?{_PLACE}"
)
_CALC = re.compile(rf"{_LABEL}calc\s+(\d+){_PLACE}")
_REQUIRES = re.compile(r"([A-Za-z]\w*)\s+(i?requires)\s+([A-Za-z]\w*)")


def read_goal(text: str, source: str) -> Trace:
    """The trace in GOAL's text; `source` is its name in error messages. Raises TraceError."""
    reader = _Reader()
    for number, line in _lines(text):
        reader.read(line, f"{source}:{number}")
    return reader.trace(source)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, without comments and outer blanks, with numbers from 1."""
    bare = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    for number, line in enumerate(bare.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def _number(digits: str, where: str) -> int:
    if len(digits) > _DIGITS:
        raise TraceError(where, f"has a number of {len(digits)} digits; {_DIGITS} are the most")
    return int(digits)


def _number_or_any(digits: str, where: str) -> int:
    return ANY if digits.startswith("-") else _number(digits, where)


@dataclass
class _Reader:
    ranks: int | None = None
    rank: int | None = None
    """The rank of the present block; None outside a block."""
    steps: list[Step] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    """Each label of this rank -> the number of its step."""

    def read(self, line: str, where: str) -> None:
        if self.rank is None:
            self._read_outside(line, where)
        elif line == "}":
            self.rank = None
        else:
            self._read_inside(line, where, self.rank)

    def trace(self, source: str) -> Trace:
        if self.ranks is None:
            raise TraceError(source, "has no num_ranks; begin with `num_ranks 8`")
        if self.rank is not None:
            raise TraceError(source, f"rank {self.rank} has no end; close it with a line `}}`")
        if not self.steps:
            raise TraceError(source, "has no steps; give a rank something to do")
        return Trace(self.ranks, tuple(self.steps))

    def _read_outside(self, line: str, where: str) -> None:
        if match := _RANKS.fullmatch(line):
            if self.ranks is not None:
                raise TraceError(where, "has num_ranks a second time; take one of the two out")
            self.ranks = _number(match[1], where)
        elif match := _OPEN.fullmatch(line):
            self.rank = self._known(_number(match[1], where), where)
            self.labels = {}
        else:
            raise TraceError(where, "is not a line of GOAL; write `num_ranks 8` or `rank 0 {`")

    def _read_inside(self, line: str, where: str, rank: int) -> None:
        if match := _MESSAGE.fullmatch(line):
            self._add_message(match, where, rank)
        elif match := _CALC.fullmatch(line):
            self._add(match[1], Step(where, rank, Does.CALC, lasts_ns=_number(match[2], where)))
        elif match := _REQUIRES.fullmatch(line):
            self._add_dependency(match[1], match[2], match[3], where)
        else:
            raise TraceError(
                where,
                "is neither a step nor a dependency; write `l1: send 10b to 1 tag 0`, "
                "`l2: recv 10b from 1 tag 0`, `l3: calc 100` or `l3 requires l1`",
            )

    def _add_message(self, match: re.Match[str], where: str, rank: int) -> None:
        _, verb, size, way, peer, tag = match.groups(default="0")
        if (verb == "send") != (way == "to"):
            raise TraceError(where, f"{verb} goes with {'to' if verb == 'send' else 'from'}")
        ends = (_number_or_any(peer, where), _number_or_any(tag, where))
        assert self.ranks is not None
        step = message(where, Does(verb), rank, ends, _number(size, where), self.ranks)
        self._add(match[1], step)

    def _add(self, label: str | None, step: Step) -> None:
        if label is not None and self.labels.setdefault(label, len(self.steps)) != len(self.steps):
            raise TraceError(step.where, f"{label} is a step of this rank already; rename one")
        self.steps.append(step)

    def _add_dependency(self, later: str, how: str, earlier: str, where: str) -> None:
        for label in (later, earlier):
            if label not in self.labels:
                raise TraceError(where, f"there is no step {label} of this rank before this line")
        number, waits_for = self.labels[later], self.labels[earlier]
        step = self.steps[number]
        if how == "requires":
            step = replace(step, after=(*step.after, waits_for))
        else:
            step = replace(step, with_start_of=(*step.with_start_of, waits_for))
        self.steps[number] = step

    def _known(self, rank: int, where: str) -> int:
        if self.ranks is None:
            raise TraceError(where, "comes before num_ranks; begin with `num_ranks 8`")
        return _one_of(rank, self.ranks, where)


def message(
    where: str, does: Does, rank: int, ends: tuple[int, int], size_bytes: int, ranks: int
) -> Step:
    """A send or a receive of a rank among `ranks`. `ends`: its peer and its tag; -1 means any.

    Raises TraceError for what a graph of operations cannot express.
    """
    peer, tag = ends
    if ANY in ends:
        raise TraceError(where, "has -1, which means any rank or tag; name a rank and a tag")
    if _one_of(peer, ranks, where) == rank:
        raise TraceError(where, f"is a message of rank {rank} to itself; take it out")
    return Step(where, rank, does, peer=peer, tag=tag, size_bytes=size_bytes)


def _one_of(rank: int, ranks: int, where: str) -> int:
    if rank >= ranks:
        raise TraceError(where, f"there is no rank {rank} among {ranks}; raise num_ranks")
    return rank
