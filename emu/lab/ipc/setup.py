"""What the lab hands to its processes before they start, and how they say that they are ready."""

from __future__ import annotations

from emu.lab.ipc.codec import Query, message
from emu.lab.ipc.messages import Done
from emu.measure.recording import FlowRecord, MarkedBy
from emu.measure.seqlock import Layout
from emu.subnet import Subnet


@message
class ShimReady:
    """The shim waits for `Start`. In an interactive lab its counters come as an open file."""

    counters: Layout | None = None


@message
class SetUpShim(Query[ShimReady]):
    """All switches and cables.

    Open files, in this order: with `rerouted` the channel to the lab's routing thread; with marker
    `ebpf` the maps of queue depths and of marking curves.
    """

    spec: str
    slowdown: float
    interactive: bool
    """Users may look at the fabric and set faults at any time; it has no fixed end."""
    plane: str
    """`ovs` or `shim`."""
    marker: MarkedBy
    out: str
    """The folder for captures."""
    subnet: Subnet | None
    """The subnet manager's tables, on InfiniBand."""
    rerouted: bool
    """Whether the lab routes again when links change; the open files then begin with the channel
    to its routing thread."""


@message
class ShimStopped:
    """The answer to `Stop`. The observation comes as an open file."""

    captures: dict[str, str]
    """Port -> file."""


@message
class NicsReady:
    """The NICs wait for `Start`. Three open files: both counters, and a channel for queries."""

    hosts: Layout
    """A row for each host."""
    flows: Layout
    """A row for each flow of the workload."""


@message
class SetUpNics(Query[NicsReady]):
    """The NICs of all hosts. When their work is over they answer `Done`, with the observation as an
    open file."""

    spec: str
    slowdown: float
    interactive: bool
    """Faults of NICs come with `Start`, not from the spec."""
    hosts: dict[str, int]
    """Host -> a process in its network namespace."""
    subnet: Subnet | None
    ip: bool
    """Whether InfiniBand's hosts have an ib0, which their NICs serve."""
    idle: bool = False
    """No workload: the NICs are there for IP alone, until they are dismissed."""
    starts: int = 0
    """How many workloads there were before: packet sequence numbers go on after them."""


@message
class SetUpTcp(Query[Done]):
    """The TCP flows of the spec. When they are over the process answers `StreamsDone`."""

    spec: str
    slowdown: float
    hosts: dict[str, int]
    """Host -> a process in its network namespace."""


@message
class StreamsDone:
    """What became of the TCP flows."""

    flows: tuple[FlowRecord, ...] = ()
    notes: tuple[str, ...] = ()
