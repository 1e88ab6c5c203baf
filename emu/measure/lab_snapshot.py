"""A snapshot of a running lab: counters, faults, links and traffic at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emu.measure.records import Counters, Deadlock
from emu.measure.run_progress import RunProgress

if TYPE_CHECKING:
    from emu.measure.raw_counters import RawCounters
    from emu.spec.fault import Fault  # a third of the time that `emu status` takes to start


@dataclass(frozen=True)
class TrafficState:
    """The latest workload."""

    number: int
    """Counts how often traffic was started; 0: never."""
    state: str
    """`none`, `running`, `over`, `stopped` or `failed`."""
    progress: RunProgress | None
    flows: tuple[Mapping[str, Any], ...]
    """Once it is over: the fields of each `FlowRecord`."""
    verdict: str = "ok"
    """Once it is over: whether the machine kept up, `ok` or `inconclusive`."""
    error: str = ""
    """Why it has failed."""


@dataclass(frozen=True)
class SeenFault:
    """A fault that is set in the lab, by its spec or by a command."""

    name: str
    kind: str
    place: str
    at_ns: int | None
    """When it begins; None: with traffic, or NICs, that are not there."""
    end_ns: int | None
    """None: until it is cleared."""
    packets_seen: int = 0
    hits: int = 0
    packets_dropped: int = 0
    cables: tuple[str, ...] = ()
    """Cables that it takes down, named as in `LinkChange`."""
    spec: Fault | None = None
    """Its entry in a spec, where that is known."""

    def state(self, now_ns: int) -> str:
        return fault_state(self.at_ns, self.end_ns, now_ns)


@dataclass(frozen=True)
class LinkChange:
    """Links were lost, or came back."""

    at_ns: int
    down: tuple[str, ...]
    """Every cable that is down from then on, named by one of its ports."""
    in_force_ns: int | None
    """When the last switch followed the routes that avoid them; None: not known yet."""


@dataclass(frozen=True)
class FlowSnapshot:
    """A flow of the latest workload."""

    bytes: int
    """Of all its messages."""
    delivered: int
    status: str | None = None
    """The status of the message that ended its queue pair, as in `FailedQueuePair`."""
    failed_ns: int = 0
    """When, in the traffic's time."""


@dataclass(frozen=True)
class LabSnapshot:
    """Switches count since the lab started, hosts since the traffic started."""

    time_ns: int
    """Emulated, of the switches."""
    ports: Mapping[str, RawCounters]
    """Of the switches, by name."""
    hosts: Mapping[str, Counters]
    traffic: TrafficState
    faults: tuple[SeenFault, ...] = ()
    host_ports: Mapping[str, RawCounters] = field(default_factory=dict)
    """The counters of hosts' own ports since the traffic was started, by name."""
    flows: Mapping[str, FlowSnapshot] = field(default_factory=dict)
    links: tuple[LinkChange, ...] = ()
    """The latest of them, the newest last."""
    deadlocks: tuple[Deadlock, ...] = ()
    """All that were found since the lab came up."""


def fault_state(at_ns: int | None, end_ns: int | None, now_ns: int) -> str:
    """`waiting`, `active` or `over`. `at_ns`: when the fault begins; None: not known yet."""
    if at_ns is None or now_ns < at_ns:
        return "waiting"
    return "active" if end_ns is None or now_ns < end_ns else "over"


def cause_of(snapshot: LabSnapshot, cable: str) -> str:
    """What has taken a cable away: the faults that do so, in words."""
    names = [f"the fault {fault.name}" for fault in snapshot.faults if cable in fault.cables]
    return " and ".join(names) or "a fault that was cleared"
