"""The queries of clients to a background lab, and its answers.

A lab also answers `GetPorts` and the queries about faults of `emu.lab.ipc.queries`, and the queries
of users in `emu.lab.ipc.lab_time`.
"""

from __future__ import annotations

from emu.lab.ipc.codec import Json, Query, message
from emu.lab.ipc.lab_time import LabTime
from emu.lab.ipc.messages import Done
from emu.lab.ipc.queries import FaultStatus
from emu.lab.ipc.routing import Sweep
from emu.measure.counter_layout import Layout
from emu.measure.lab_snapshot import LinkChange
from emu.measure.reachability import MeasuredCell
from emu.measure.records import Deadlock, Fidelity, FlowRecord, MarkedBy
from emu.measure.run_progress import RunProgress
from emu.subnet.subnet import PathSLs, Subnet


@message
class Version:
    """The version of the code that the lab runs (`emu.lab.version`)."""

    version: str


@message
class GetVersion(Query[Version]):
    """Which version does the lab run? The first query: other messages differ between versions."""


@message
class TrafficStatus:
    """The state of the latest workload."""

    progress: RunProgress | None = None
    flows: tuple[FlowRecord, ...] = ()
    """Empty until the workload is over; `fidelity` is None until then."""
    fidelity: Fidelity | None = None
    error: str | None = None
    """Why the workload has failed."""
    number: int = 0
    """How often traffic was started."""
    state: str = "none"
    """`none`, `running`, `over`, `stopped` or `failed`."""


@message
class Status:
    """A lab and its traffic."""

    name: str
    spec: str
    clock: str
    """`real` or `exact`."""
    time: LabTime
    slowdown: float
    plane: str
    marker: MarkedBy
    notes: tuple[str, ...]
    ip: bool
    """Whether hosts can send IP packets to each other."""
    up_seconds: float
    traffic: TrafficStatus
    programs: dict[str, int]
    """How many verbs programs use the NIC of each host that has any."""
    stopped_programs: dict[str, int]
    """Those of them that a signal has stopped. On the exact clock, time stands for them."""
    sweeps: tuple[Sweep, ...]
    links: tuple[LinkChange, ...]


@message
class GetStatus(Query[Status]):
    """What is the state of the lab?"""


@message
class FaultSnapshot:
    """A fault, with the cables that it takes down."""

    status: FaultStatus
    cables: tuple[str, ...] = ()
    """Cables that it takes down, each named by one of its ports."""
    spec: Json | None = None
    """The fault's entry as in a spec; None: not known."""


@message
class Snapshot:
    """A lab at one moment. Its counters are open files, in this order: `ports`, and after the first
    workload `hosts` and `flows`."""

    status: Status
    ports: Layout
    hosts: Layout | None
    flows: Layout | None
    faults: tuple[FaultSnapshot, ...]
    deadlocks: tuple[Deadlock, ...]


@message
class GetSnapshot(Query[Snapshot]):
    """What are the lab's state, faults and counters at this moment?"""


@message
class Namespaces:
    """The namespaces of a node are open files, in the order in which they must be entered."""

    environment: dict[str, str]
    """The environment variables that programs in the lab need."""
    tasks: dict[str, int]
    """Every host -> a process or thread in its namespaces; also the lab's own."""
    places: dict[str, str]
    """What a program on the node finds at other places: where -> what, in the order in which to
    mount them."""


@message
class GetNamespaces(Query[Namespaces]):
    """What are the namespaces of this node? None, or a switch without an operating system of its
    own: the lab's."""

    node: str | None = None
    management: bool = False
    """Whether those of its agent on the management network are meant."""


@message
class ShowRdmaSysfs(Query[Done]):
    """Keep the NIC's files of these hosts up to date until all copies of the answer's open file are
    closed (`emu.lab.rdma_sysfs`)."""

    hosts: tuple[str, ...]


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
    """Capture a port. The answer's open file is a socket with raw records."""

    port: str
    since_start: bool = False


@message
class BorrowedNic:
    """A client may act as a host's NIC. The open file is a socket on the host's interface."""

    ifindex: int
    subnet: Subnet | None


@message
class BorrowNic(Query[BorrowedNic]):
    """Let the client act as the NIC of this host."""

    host: str


@message
class JoinLab(Query[Done]):
    """Let the client's NICs take part in emulated time, in a lab on the exact clock. The answer has
    the memory that they share with the shim, and the eventfds `nudge` and `resume`."""


@message
class PathLevels:
    """Service levels of InfiniBand's paths."""

    levels: PathSLs


@message
class GetPathLevels(Query[PathLevels]):
    """Which service levels do new queue pairs use?"""


@message
class ToolOutput:
    """The output of one of InfiniBand's tools."""

    text: str
    code: int
    """The tool's exit code."""


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
    """From the lab to all its clients: the lab ends now."""

    reason: str


@message
class Reachability:
    """Who can reach whom."""

    cells: tuple[MeasuredCell, ...]
    joints: tuple[str, ...]
    """Interfaces that join the fabric and the management network, in words."""


@message
class MeasureReachability(Query[Reachability]):
    """Measure who can reach whom, with probes that have so much real time. `fabric`: on the fabric,
    too. `nodes`: only these hosts and switches, and the collector; all if empty."""

    seconds: float
    fabric: bool
    nodes: tuple[str, ...] = ()
