"""What there is to see of a running lab at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emu.measure.counters import RawCounters
from emu.measure.progress import Progress
from emu.measure.recording import Counters


@dataclass(frozen=True)
class TrafficState:
    """The latest workload."""

    number: int
    """Counts how often traffic was started; 0: never."""
    state: str
    """`none`, `running`, `over` or `stopped`."""
    progress: Progress | None
    flows: tuple[Mapping[str, Any], ...]
    """Once it is over: the fields of each `FlowRecord`."""
    verdict: str = "ok"
    """Once it is over: whether the machine kept up, `ok` or `inconclusive`."""


@dataclass(frozen=True)
class SeenFault:
    """A fault that there is in the lab, whoever set it."""

    name: str
    kind: str
    place: str
    at_ns: int | None
    """When it begins; None: with traffic, or NICs, that are not there."""
    end_ns: int | None
    """None: until it is cleared."""


@dataclass(frozen=True)
class Look:
    """All counters since the lab, and of hosts since the traffic, was started."""

    time_ns: int
    """Emulated, of the switches."""
    ports: Mapping[str, RawCounters]
    """Of the switches, by name."""
    hosts: Mapping[str, Counters]
    traffic: TrafficState
    faults: tuple[SeenFault, ...] = ()
