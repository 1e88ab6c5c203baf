"""A trace: what each rank does, step by step, in any format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from traffic.graph import LONGEST_MESSAGE_BYTES, LONGEST_WORK_NS
from traffic.job import Kind

LARGEST_COLLECTIVE_BYTES = 2**40
"""The largest buffer of a rank; it is larger than any GPU's memory."""


LONGEST_BYTES = 64_000_000
"""The longest file, which has some million steps."""


class TraceError(ValueError):
    """A mistake in a trace. The message says where it is, what is wrong, and what to do."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


class Does(StrEnum):
    """The kind of a step."""

    SEND = "send"
    RECV = "recv"
    CALC = "calc"
    COLLECTIVE = "collective"


@dataclass(frozen=True)
class Group:
    """The ranks of a collective, in order."""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One step of a rank. It names the steps that it waits for by their numbers in the trace.

    Raises TraceError for a size or a duration that no run could have.
    """

    where: str
    """Its place in the file: `ring.goal:12`."""
    rank: int
    does: Does
    peer: int = 0
    tag: int = 0
    size_bytes: int = 0
    lasts_ns: int = 0
    collective: Kind | None = None
    group: Group | None = None
    """The ranks of a collective."""
    after: tuple[int, ...] = ()
    """The steps that must be over."""
    with_start_of: tuple[int, ...] = ()
    """The steps that must have begun."""

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
    """The whole number that a value of a file means. Raises ValueError."""
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
