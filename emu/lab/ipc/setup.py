"""The messages that set up a lab's processes, and their answers."""

from __future__ import annotations

from dataclasses import field

from emu.lab.ipc.codec import Query, message
from emu.lab.ipc.messages import Done
from emu.measure.counter_layout import Layout
from emu.measure.records import FlowRecord, MarkedBy
from emu.subnet.subnet import Subnet


@message
class ShimReady:
    """The shim waits for `Start`. In an interactive lab its counters are an open file; on the exact
    clock so is the state of its time, after them."""

    counters: Layout | None = None


@message
class SetUpShim(Query[ShimReady]):
    """Set up all switches and cables.

    Open files, in this order: with `rerouted` the channel to the lab's routing thread; with
    `cpu_ports` a packet socket for their interfaces; with marker
    `ebpf` the maps of queue depths and of marking curves.
    """

    spec: str
    slowdown: float
    interactive: bool
    """Whether users may read counters and set faults at any time; the lab has no fixed end then."""
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
    cpu_ports: dict[str, int] = field(default_factory=dict)
    """Ports of switches -> the index of the interface where they exchange packets with the switch's
    own control plane."""
    exact: bool = False
    """Whether emulated time waits for frames. The open files are then, after that channel, the
    memory that the shim shares with the NICs (not in an interactive lab, where NICs join later)
    and, with marker `ebpf`, the program and its maps. The shim's last message is `ExactDone`."""


@message
class ShimStopped:
    """The answer to `Stop`. The observation is an open file."""

    captures: dict[str, str]
    """Port -> file."""


@message
class NicsReady:
    """The NICs wait for `Start`. Open files: both counters, and a channel for queries."""

    hosts: Layout
    """A row for each host."""
    flows: Layout
    """A row for each flow of the workload."""


@message
class SetUpNics(Query[NicsReady]):
    """Set up the NICs of all hosts. When their work is over they send `Done`, with the observation
    as an open file."""

    spec: str
    slowdown: float
    interactive: bool
    """Whether `Start` carries the faults of NICs instead of the spec."""
    hosts: dict[str, int]
    """Host -> a process in its network namespace."""
    subnet: Subnet | None
    ip: bool
    """Whether InfiniBand's hosts have an ib0, which their NICs serve."""
    idle: bool = False
    """No workload: the NICs only carry IP, until the lab ends the process."""
    starts: int = 0
    """The number of earlier workloads; packet sequence numbers continue after theirs."""
    exact: bool = False
    """Whether emulated time waits for frames; then the memory that the NICs share with the shim is
    an open file, and the last message of a run is `ExactDone`."""
    out: str = ""
    """The folder for captures of a run, if `exact`."""


@message
class ExactDone:
    """The end of a run on the exact clock, in the shim or the NICs. The observation is an open
    file."""

    captures: dict[str, str]
    """Port -> file."""
    windows: int
    """Stretches of emulated time between two exchanges with the other process."""
    frames: int
    """Frames sent to the other process or to Open vSwitch."""
    foreign: int
    """Frames of programs and of the kernel."""


@message
class SetUpTcp(Query[Done]):
    """Set up the TCP flows of the spec. When they are over the process sends `StreamsDone`."""

    spec: str
    slowdown: float
    hosts: dict[str, int]
    """Host -> a process in its network namespace."""


@message
class StreamsDone:
    """The records of the TCP flows."""

    flows: tuple[FlowRecord, ...] = ()
    notes: tuple[str, ...] = ()
