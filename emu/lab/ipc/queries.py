"""The lab's queries to the running shim and NICs, and their answers."""

from __future__ import annotations

from emu.lab.ipc.codec import Json, Query, message
from emu.lab.ipc.messages import Done
from emu.measure.records import Deadlock


@message
class PortSnapshot:
    """A switch port at one moment. Sequences have one item for each priority."""

    counters: dict[str, int]
    """By the names that operators know."""
    queued: tuple[int, ...]
    """Bytes in each egress queue."""
    held: tuple[int, ...]
    """Bytes of the buffer that each priority holds."""
    paused: tuple[bool, ...]


@message
class PortsSnapshot:
    """Every switch port, by name."""

    now_ns: int
    ports: dict[str, PortSnapshot]


@message
class GetPorts(Query[PortsSnapshot]):
    """What are the ports' counters, queues and pauses at this moment?"""


@message
class ShimTiming:
    """How late the shim has been since its start: the histograms and counts of a `Timing`."""

    late_sent: tuple[int, ...]
    late_taken_in: tuple[int, ...]
    late_returned: tuple[int, ...]
    plane_kept: tuple[int, ...]
    send_failures: int
    receive_drops: int
    overtaken: int
    transit_lost: int


@message
class GetTiming(Query[ShimTiming]):
    """How late has the shim been since its start?"""


@message
class Tap(Query[Done]):
    """Send the frames at a port to the socket that is the query's open file."""

    port: str
    since_start: bool = False
    """Whether to send the kept earlier frames, too."""


@message
class FaultStatus:
    """The fields of a `FaultRecord`, and the state of the fault."""

    name: str
    kind: str
    place: str
    at_ns: int | None
    """When the fault begins; None: with NICs or traffic that have not started yet."""
    end_ns: int | None
    packets_seen: int
    hits: int
    packets_dropped: int
    state: str
    """`waiting`, `active` or `over`."""


@message
class FaultList:
    """All faults, and the deadlocks found so far."""

    faults: tuple[FaultStatus, ...]
    deadlocks: tuple[Deadlock, ...] = ()


@message
class ListFaults(Query[FaultList]):
    """Which faults are set?"""


@message
class ProgramCount:
    """How many verbs programs are connected with the NICs of hosts."""

    by_host: dict[str, int]
    stopped: dict[str, int]
    """Of these, those that a signal has stopped."""


@message
class CountPrograms(Query[ProgramCount]):
    """Which verbs programs are connected?"""


@message
class SetFault(Query[FaultList]):
    """Begin a fault now."""

    name: str
    fault: Json
    """The fault's entry, as in a spec."""


@message
class ClearFault(Query[FaultList]):
    """End a fault."""

    name: str
