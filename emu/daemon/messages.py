"""What clients ask a lab in the background, and its answers.

`GetPorts` and the queries of faults (`emu.lab.ipc.queries`) may be sent to such a lab, too.
"""

from __future__ import annotations

from emu.lab.ipc.codec import Json, Query, message
from emu.lab.ipc.messages import Done
from emu.lab.ipc.queries import FaultStatus
from emu.measure.lab_snapshot import LinkChange
from emu.measure.recording import Deadlock, Fidelity, FlowRecord, MarkedBy
from emu.measure.run_progress import RunProgress
from emu.measure.seqlock import Layout
from emu.subnet import Subnet
from emu.subnet.subnet import PathSLs


@message
class Version:
    """Of the code that the lab runs (`emu.lab.version`)."""

    version: str


@message
class GetVersion(Query[Version]):
    """A client asks this first: all other messages differ between versions."""


@message
class TrafficStatus:
    """The latest workload."""

    progress: RunProgress | None = None
    flows: tuple[FlowRecord, ...] = ()
    """Filled when the workload is over, as is `fidelity`."""
    fidelity: Fidelity | None = None
    error: str | None = None
    """Why it has failed."""
    number: int = 0
    """How often traffic was started."""
    state: str = "none"
    """`none`, `running`, `over`, `stopped` or `failed`."""


@message
class Sweep:
    """A sweep of the subnet manager that changed links have caused."""

    at_ns: int
    """When the links changed, in emulated time."""
    seconds: float
    """Wall-clock time from then until there were tables."""


@message
class Status:
    """A lab and its traffic."""

    name: str
    spec: str
    slowdown: float
    plane: str
    marker: MarkedBy
    notes: tuple[str, ...]
    ip: bool
    """Whether hosts reach each other by IP."""
    up_seconds: float
    traffic: TrafficStatus
    sweeps: tuple[Sweep, ...]
    links: tuple[LinkChange, ...]


@message
class GetStatus(Query[Status]):
    """How is the lab?"""


@message
class FaultSnapshot:
    """A fault and what it takes away."""

    status: FaultStatus
    cables: tuple[str, ...] = ()
    """Cables that are lost by it, each by one of its ports."""
    spec: Json | None = None
    """As in a spec; None: not known."""


@message
class Snapshot:
    """A lab at one moment. Its counters come as open files, in this order: `ports`, and where
    there was traffic `hosts` and `flows`."""

    status: Status
    ports: Layout
    hosts: Layout | None
    flows: Layout | None
    faults: tuple[FaultSnapshot, ...]
    deadlocks: tuple[Deadlock, ...]


@message
class GetSnapshot(Query[Snapshot]):
    """What is there to see at this moment?"""


@message
class Namespaces:
    """The namespaces of a node come as open files, in the order in which they must be entered."""

    environment: dict[str, str]
    """What programs in the lab need."""
    tasks: dict[str, int]
    """Every node -> a process in its namespaces."""


@message
class GetNamespaces(Query[Namespaces]):
    """Where is this node? A switch is in the lab's own namespaces, and so is None."""

    node: str | None = None


@message
class StartTraffic(Query[TrafficStatus]):
    """Start the workload of the spec."""


@message
class StopTraffic(Query[TrafficStatus]):
    """Stop the workload."""


@message
class Ports:
    """All switch ports."""

    fabric: str
    """`roce` or `ib`."""
    rates_bps: dict[str, int]


@message
class ListPorts(Query[Ports]):
    """Which ports can be captured?"""


@message
class Capture(Query[Done]):
    """Capture a port. The answer brings a socket with raw records."""

    port: str
    since_start: bool = False


@message
class BorrowedNic:
    """The place of a host's NIC. A socket on the host's interface comes along."""

    ifindex: int
    subnet: Subnet | None


@message
class BorrowNic(Query[BorrowedNic]):
    """The client is to be the NIC of this host."""

    host: str


@message
class PathLevels:
    """Service levels of InfiniBand's paths."""

    levels: PathSLs


@message
class GetPathLevels(Query[PathLevels]):
    """Which service levels do queue pairs get that connect now?"""


@message
class ToolOutput:
    """What one of InfiniBand's tools printed."""

    said: str
    code: int
    """Its exit code."""


@message
class RunTool(Query[ToolOutput]):
    """Run one of InfiniBand's tools on a node."""

    node: str
    command: tuple[str, ...]


@message
class EndLab(Query[Done]):
    """End the lab."""


@message
class LabEnded:
    """From the lab to all its clients: it ends now."""

    reason: str
