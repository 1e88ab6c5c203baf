"""What the lab asks the shim and the NICs while they emulate, and their answers."""

from __future__ import annotations

from emu.lab.ipc.codec import Json, Query, message
from emu.lab.ipc.messages import Done
from emu.measure.recording import Deadlock


@message
class PortSnapshot:
    """A switch port at one moment. Sequences have one item for each priority."""

    counters: dict[str, int]
    """By the names operators know."""
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
    """How punctual the shim has been since its start: histograms and counts of a `Timing`."""

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
    """How punctual have you been?"""


@message
class Tap(Query[Done]):
    """Send the frames at a port to the socket that comes along."""

    port: str
    since_start: bool = False
    """Also the frames before, as far as they are kept."""


@message
class FaultStatus:
    """The fields of a `FaultRecord`, and how far the fault is."""

    name: str
    kind: str
    place: str
    at_ns: int | None
    """None: it begins with NICs, or traffic, that are not there yet."""
    end_ns: int | None
    packets_seen: int
    hits: int
    packets_dropped: int
    state: str
    """`waiting`, `active` or `over`."""


@message
class FaultList:
    """All faults there are, and the deadlocks that were found so far."""

    faults: tuple[FaultStatus, ...]
    deadlocks: tuple[Deadlock, ...] = ()


@message
class ListFaults(Query[FaultList]):
    """Which faults are there?"""


@message
class SetFault(Query[FaultList]):
    """Begin a fault now."""

    name: str
    fault: Json
    """As in a spec."""


@message
class ClearFault(Query[FaultList]):
    """End a fault."""

    name: str
