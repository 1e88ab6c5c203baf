"""The exact clock: the part of a fabric in one process of a lab, whose emulated time waits for the
frames.

The C driver (exact_driver.h) does everything between two calls of `run`; Python opens the sockets
and passes them to the driver.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Any, Self

from emu._core import ffi, lib
from emu.bindings.fabric import Fabric, NodeSubset
from emu.bindings.frame_names import name_frame
from emu.bindings.marker_maps import MarkerMaps
from emu.errors import FabricError
from emu.units import PS_PER_NS, write_time
from topologies.graph import Port

_NEVER = 2**63 - 1


class Outcome(IntEnum):
    """Why `ExactDriver.run` returned."""

    WOKEN = lib.EXACT_WOKEN
    FINISHED = lib.EXACT_FINISHED
    PAUSED = lib.EXACT_PAUSED
    FAILED = lib.EXACT_FAILED
    STANDS = lib.EXACT_STANDS
    LINKS_CHANGED = lib.EXACT_LINKS_CHANGED
    EVENT = lib.EXACT_EVENT
    IDLE = lib.EXACT_IDLE


@dataclass(frozen=True)
class Patience:
    """How long to wait, on the wall clock: what has not come by then never comes."""

    frame_seconds: float = 10.0
    """For a frame or packet that was sent."""
    other_seconds: float = 60.0
    """For the other process to make progress."""

    def in_core(self) -> dict[str, int]:
        return {
            "frame_ns": int(self.frame_seconds * 1e9),
            "other_ns": int(self.other_seconds * 1e9),
        }


@dataclass(frozen=True)
class ExactCounts:
    """What one process has done on the exact clock."""

    windows: int
    """Stretches of emulated time between two exchanges with the other process."""
    sent: int
    """Frames to the other process."""
    datapath: int
    """Packets through Open vSwitch."""
    marked: int
    """Frames that the eBPF marker decided about."""
    foreign: int
    """Frames of programs and of the kernel."""


def shared_memory(cables: int) -> int:
    """A descriptor of new memory for both processes. The caller closes it."""
    memory = os.memfd_create("exact-clock")
    os.ftruncate(memory, lib.exact_memory_bytes(cables))
    return memory


@dataclass(frozen=True)
class Wakes:
    """Descriptors of the eventfds that wake the two processes while a program decides what the NICs
    do next."""

    nudge: int
    """Readable: frames of programs wait in the switches, so the NICs should call `run`, which reads
    it."""
    resume: int
    """Readable: the NICs have gone on, so the switches should call `run`."""

    @staticmethod
    def new() -> Wakes:
        """New ones, for both processes. The caller closes them."""
        nudge, resume = (os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(2))
        return Wakes(nudge, resume)

    def copy(self) -> Wakes:
        return Wakes(os.dup(self.nudge), os.dup(self.resume))

    def close(self) -> None:
        os.close(self.nudge)
        os.close(self.resume)


class ExactDriver:
    """A part of a fabric on the exact clock. Use as a context manager."""

    def __init__(
        self, fabric: Fabric, *, step_ps: int, wake: int, patience: Patience = Patience()
    ) -> None:
        """A run ends with the step in which its workload ends. `run` returns when the descriptor
        `wake` becomes readable."""
        self._fabric = fabric
        self._patience = patience
        self._sockets: list[socket.socket] = []
        self._marker: MarkerMaps | None = None
        self._wakes: Wakes | None = None
        is_nics = fabric.members is NodeSubset.HOSTS
        side = lib.EXACT_NICS if is_nics else lib.EXACT_SWITCHES
        self._cable = {host: number for number, host in enumerate(fabric.topology.host)}
        self._core = lib.exact_new(
            fabric.core, side, len(self._cable), step_ps, wake, patience.in_core()
        )
        _check(self._core != ffi.NULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lib.exact_free(self._core)
        self._close_wakes()
        for opened in self._sockets:
            opened.close()

    def add_socket(self, opened: socket.socket, *, ring_frames: int) -> int:
        """Adds a socket, which the driver then owns; returns its channel. It receives by a ring of
        so many frames, 4.5 KB each."""
        self._sockets.append(opened)
        channel = int(lib.exact_add_channel(self._core, opened.fileno(), ring_frames))
        _check(channel >= 0)
        return channel

    def attach_end(self, channel: int, ifindex: int, port: Port, *, host: str, room: int) -> None:
        """Makes this interface the cable end of `port`, on the cable of `host`. `room`: how many
        frames that this process sends may be on the way at a time."""
        index, cable = self._fabric.index[port], self._cable[host]
        _check(lib.exact_attach_end(self._core, channel, ifindex, index, cable, room))

    def attach_datapath(self, channel: int, ifindex: int, port: Port) -> None:
        """Makes the switch port hand its packets to the external datapath by this interface."""
        switch = self._fabric.switches[port.node]
        _check(lib.exact_attach_datapath(self._core, channel, ifindex, switch, port.number))

    def share_marker(
        self, program: int, depths: int, curves: int, ifindex: Mapping[Port, int]
    ) -> None:
        """Lets the eBPF program mark at these ports, which it knows by their ifindex. `program`,
        `depths`, `curves`: descriptors of the program and of its maps."""
        self._marker = MarkerMaps.of(self._fabric.topology, depths, curves)
        lib.exact_set_marker(
            self._core,
            program,
            *self._marker.pointers,
            [self._fabric.index[port] for port in ifindex],
            [*ifindex.values()],
            len(ifindex),
        )

    def finish_with(self, workload: Any) -> None:
        """The run ends with this workload (a `struct workload *`)."""
        lib.exact_set_workload(self._core, workload)

    def join(self, memory: int, wakes: Wakes | None = None, *, endless: bool = False) -> None:
        """Joins the other process for one run. `memory`: a descriptor from `shared_memory`. All
        cables must be attached. The switches must join first: their present time is the NICs'
        time 0. `wakes`: without them, frames of programs wait up to 50 ms while a program decides
        what the NICs do. `endless`: the spec's time limit does not end the run; for both.

        The driver has copies of the descriptors."""
        limit_ps = -(-self._fabric.spec.time_limit_ps // 1000) * 1000
        end_ps = _NEVER if endless else self._fabric.now_ps + limit_ps
        self._wakes = wakes.copy() if wakes else None
        in_core = {"nudge_fd": self.nudge, "resume_fd": self.resume}
        _check(lib.exact_join(self._core, memory, in_core, end_ps))

    def leave(self) -> None:
        """Leaves the other process: the switches run on alone, and can be joined by other NICs."""
        lib.exact_leave(self._core)
        self._close_wakes()

    def _close_wakes(self) -> None:
        if self._wakes:
            self._wakes.close()
        self._wakes = None

    @property
    def nudge(self) -> int:
        """A descriptor that is readable when the NICs should call `run` again after `Outcome.IDLE`,
        because frames of programs wait; -1: there is none."""
        return self._wakes.nudge if self._wakes else -1

    @property
    def resume(self) -> int:
        """A descriptor that is readable when the switches should call `run` again after
        `Outcome.STANDS`, because the NICs go on; -1: there is none."""
        return self._wakes.resume if self._wakes else -1

    def hold(self, at_ps: int | None) -> None:
        """Lets emulated time stand at `at_ps`, or as soon as possible if that is past; None: lets
        it run. For the switches; the NICs follow."""
        lib.exact_hold(self._core, _NEVER if at_ps is None else at_ps)

    def changed(self) -> None:
        """Must be called after the switches were changed, as by a fault, while emulated time is to
        stand. What they published before about their next events does not count then."""
        lib.exact_changed(self._core)

    def stop_at_link_changes(self) -> None:
        """From now on `run` returns at the instant of each link change. For the switches."""
        lib.exact_stop_at_link_changes(self._core)

    def stop_at_event(self, event: Any, until_ps: int | None) -> None:
        """From now on `run` returns at `until_ps`, or at the instant at which `event` (a `bool *`)
        becomes true, so that a program can post work. None: at `event` alone, or as soon as nothing
        is left to happen in the lab (`Outcome.IDLE`). For the NICs."""
        lib.exact_stop_at_event(self._core, event, _NEVER if until_ps is None else until_ps)

    def run_on(self, until_ps: int) -> None:
        """Without NICs, emulated time runs on up to `until_ps` at least, also without frames on
        cables."""
        lib.exact_run_on(self._core, until_ps)

    def empty_datapath(self) -> None:
        """Returns when Open vSwitch has given all packets back. If it does not, `run` fails."""
        lib.exact_empty_datapath(self._core)

    def run(self, *, seconds: float) -> Outcome:
        """Runs for `seconds` of wall-clock time, or until captures want to be drained. Raises
        FabricError when the machine lost or changed a frame, or the other process stands still."""
        until_ns = time.monotonic_ns() + int(seconds * 1e9)
        outcome = Outcome(lib.exact_run(self._core, until_ns))
        if outcome is Outcome.FAILED:
            raise FabricError(self._why_failed())
        return outcome

    def counts(self) -> ExactCounts:
        counts = lib.exact_counted(self._core)
        return ExactCounts(
            counts.windows, counts.sent, counts.datapath, counts.marked, counts.foreign
        )

    def _why_failed(self) -> str:
        failure = lib.exact_failed(self._core)
        name = {
            index: self._fabric.topology.port_name[p] for p, index in self._fabric.index.items()
        }
        port = name.get(failure.index, "")
        error = os.strerror(failure.error) if failure.error else ""
        packet = self._packet(failure.head, failure.length)
        at = write_time(failure.at_ps // PS_PER_NS * PS_PER_NS)
        frame = f"frame {failure.number} from {port} ({packet}, sent at {at})"
        others = {NodeSubset.HOSTS: "switches", NodeSubset.SWITCHES: "NICs"}
        texts = {
            lib.EXACT_FRAME_LOST: f"this machine lost a frame: {frame} did not come in",
            lib.EXACT_FRAME_CHANGED: f"this machine changed a frame: {frame} is not what came in "
            "(a program that sends RoCE packets, pause frames or InfiniBand has the same effect)",
            lib.EXACT_FRAME_OVERTAKEN: f"this machine lost or reordered a frame: a later one came "
            f"in instead of {frame}",
            lib.EXACT_FRAME_REFUSED: f"the kernel refused to send a frame at {port} ({packet}): "
            f"{error}",
            lib.EXACT_LOST_IN_DATAPATH: f"Open vSwitch lost a packet: the one that came in at "
            f"{port} at {at} ({packet}) did not return",
            lib.EXACT_POOL_EXHAUSTED: f"there was no memory for {frame}; make the fabric smaller",
            lib.EXACT_NO_MARKER: f"the kernel did not run the eBPF marker at {port}: {error}; set "
            "switches.ecn.marker to shim",
            lib.EXACT_OTHER_LEFT: f"the process of the {others[self._fabric.members]} has ended "
            "the run",
            lib.EXACT_OTHER_SILENT: f"the process of the {others[self._fabric.members]} has made "
            f"no progress for {self._patience.other_seconds:g} s",
        }
        return texts[failure.kind]

    def _packet(self, head: Any, length: int) -> str:
        fabric = self._fabric
        if not head.length:
            return f"{length} bytes"
        first = bytes(ffi.buffer(head.bytes, head.length))
        what = name_frame(first, fabric.spec, fabric.topology, fabric.subnet)
        return f"{what}, {length} bytes"


def _check(done: bool) -> None:
    if not done:
        raise FabricError(
            "the driver could not take in a socket: no memory or descriptors left for its ring"
        )
