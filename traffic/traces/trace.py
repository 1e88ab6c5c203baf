"""A trace: what each rank does, step by step, whoever wrote it down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from traffic.job import Kind


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
    """One step of a rank. Steps it waits for are numbers of steps of the same trace."""

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


@dataclass(frozen=True)
class Trace:
    """The steps of all ranks, 0 to `ranks` - 1."""

    ranks: int
    steps: tuple[Step, ...]
