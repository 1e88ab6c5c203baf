"""A trace: what each rank does, step by step, whoever wrote it down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from traffic.graph import LONGEST_MESSAGE_BYTES, LONGEST_WORK_NS
from traffic.job import Kind

LARGEST_COLLECTIVE_BYTES = 2**40
"""A rank's buffer; larger than any GPU's memory."""


LONGEST_BYTES = 64_000_000
"""Of a file, which then has some million steps."""


class TraceError(ValueError):
    """What is wrong with a trace, where, and what to do. The message says all."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


class Does(StrEnum):
    """What a step is."""

    SEND = "send"
    RECV = "recv"
    CALC = "calc"
    COLLECTIVE = "collective"


@dataclass(frozen=True)
class Group:
    """The ranks of a collective, in its order."""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One step of a rank. Steps it waits for are numbers of steps of the same trace.

    Raises TraceError for a size or a duration that no run could have.
    """

    where: str
    """Where it is told of: `ring.goal:12`."""
    rank: int
    does: Does
    peer: int = 0
    tag: int = 0
    size_bytes: int = 0
    lasts_ns: int = 0
    collective: Kind | None = None
    group: Group | None = None
    """Of a collective."""
    after: tuple[int, ...] = ()
    """Those that must be over."""
    with_start_of: tuple[int, ...] = ()
    """Those that must have begun."""

    def __post_init__(self) -> None:
        is_message = self.does is not Does.COLLECTIVE
        most = LONGEST_MESSAGE_BYTES if is_message else LARGEST_COLLECTIVE_BYTES
        if not 0 <= self.size_bytes <= most:
            raise TraceError(
                self.where, f"has {self.size_bytes} bytes; a {self.does} has from 0 to {most}"
            )
        if not 0 <= self.lasts_ns <= LONGEST_WORK_NS:
            raise TraceError(
                self.where,
                f"lasts {self.lasts_ns} ns; the longest that is emulated is {LONGEST_WORK_NS} ns",
            )


def whole_number(value: object) -> int:
    """Of what a file has in place of a number. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    return int(value)


@dataclass(frozen=True)
class Trace:
    """The steps of all ranks, 0 to `ranks` - 1."""

    ranks: int
    steps: tuple[Step, ...]
