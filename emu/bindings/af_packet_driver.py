"""The real clock: the part of a fabric in one process, with AF_PACKET sockets.

The C driver (af_packet_driver.c) does everything between two calls of `run`; Python opens
the sockets, passes them to the driver, and reads the timing afterwards.
"""

from __future__ import annotations

import os
import socket
import time
from enum import IntEnum
from types import TracebackType
from typing import Any, Self

import numpy as np

from emu._core import ffi, lib
from emu.bindings.fabric import Fabric
from emu.bindings.marker_maps import MarkerMaps
from emu.errors import FabricError
from emu.measure.observation import Histogram, Timing
from emu.measure.timeline import LOSSES, Timeline
from topologies.graph import Port


class Outcome(IntEnum):
    """Why `AfPacketDriver.run` returned."""

    WOKEN = lib.DRIVER_WOKEN
    FINISHED = lib.DRIVER_FINISHED
    PAUSED = lib.DRIVER_PAUSED


class AfPacketDriver:
    """A fabric on the real clock. Use as a context manager."""

    def __init__(self, fabric: Fabric, *, slowdown: float, wake: int) -> None:
        """`run` returns when the descriptor `wake` becomes readable."""
        self._fabric = fabric
        self._slowdown = slowdown
        self._sockets: list[socket.socket] = []
        self._devices: list[int] = []
        self._marker: MarkerMaps | None = None
        self._core = lib.driver_new(fabric.core, slowdown, wake)
        _check(self._core != ffi.NULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lib.driver_free(self._core)
        for opened in self._sockets:
            opened.close()
        for device in self._devices:
            os.close(device)

    def add_socket(self, opened: socket.socket, *, ring_frames: int = 0) -> int:
        """Adds a socket, which the driver then owns; returns its channel.

        With `ring_frames` it receives through a ring of so many frames, which costs less time, and
        4.5 KB of memory for each frame.
        """
        self._sockets.append(opened)
        channel = int(lib.driver_add_channel(self._core, opened.fileno(), ring_frames))
        _check(channel >= 0)
        return channel

    def attach_end(self, channel: int, ifindex: int, port: Port, *, paced: bool = False) -> None:
        """Makes this interface the cable end of `port`. `paced`: the sender keeps to the cable's
        rate, so frames that arrive too close together were delayed by the machine."""
        index = self._fabric.index[port]
        _check(lib.driver_attach_end(self._core, channel, ifindex, index, paced))

    def add_tun(self, opened: int, interface: Any) -> None:
        """Connects an IP interface (a `struct ipoib *`) with this TUN device."""
        self._devices.append(opened)
        _check(lib.driver_add_tun(self._core, opened, interface))

    def attach_datapath(self, channel: int, ifindex: int, port: Port) -> None:
        """Makes the switch port hand its packets to the external datapath by this interface."""
        switch = self._fabric.switches[port.node]
        _check(lib.driver_attach_datapath(self._core, channel, ifindex, switch, port.number))

    def attach_cpu(self, channel: int, ifindex: int, port: Port, priority: int) -> None:
        """Makes this interface the place where the port exchanges packets with the switch's own
        control plane. `priority`: of what that sends."""
        switch = self._fabric.switches[port.node]
        _check(lib.driver_attach_cpu(self._core, channel, ifindex, switch, port.number, priority))

    def share_marker(self, depths: int, curves: int) -> None:
        """Shares two eBPF maps with the marker, by their descriptors: the driver writes the
        depth of every queue into `depths`; faults change the marking curves in `curves`."""
        self._marker = MarkerMaps.of(self._fabric.topology, depths, curves)
        lib.driver_set_marker(self._core, *self._marker.pointers)

    def queue_outside(self) -> None:
        """Declares that queues form in the external datapath. Call it before any attach method."""
        lib.driver_queue_outside(self._core)

    def finish_on(self, flag: Any) -> None:
        """`run` returns when this flag (a C pointer to bool) is true."""
        lib.driver_set_finished(self._core, flag)

    def finish_with(self, workload: Any) -> None:
        """`run` returns when this workload (a `struct workload *`) has ended."""
        lib.driver_set_workload(self._core, workload)

    def run(self, start_ns: int, *, seconds: float) -> Outcome:
        """Runs for `seconds` of wall-clock time. Emulated time 0 is at `start_ns` of the monotonic
        clock."""
        until_ns = time.monotonic_ns() + int(seconds * 1e9)
        outcome = lib.driver_run(self._core, start_ns, until_ns)
        if outcome < 0:
            raise FabricError(
                f"the emulation stopped: {OSError(-outcome, '').strerror or -outcome}"
            )
        return Outcome(outcome)

    def timing(self) -> Timing:
        """How late frames have been so far, and how many were lost."""
        lost = self._lost()
        return Timing(
            late_sent=self._histogram(0),
            late_taken_in=self._histogram(1),
            late_returned=self._histogram(2),
            plane_kept=self._histogram(3),
            receive_drops=lost["arriving"],
            send_failures=lost["leaving"],
            overtaken=lost["place"],
            timeline=self._timeline(),
        )

    def _lost(self) -> dict[str, int]:
        """The number of lost frames for each of LOSSES."""
        frames = np.zeros(len(LOSSES), np.uint64)
        lib.driver_lost(self._core, ffi.from_buffer("uint64_t[]", frames))
        return dict(zip(LOSSES, frames.tolist(), strict=True))

    def _timeline(self) -> Timeline:
        rows = np.zeros((lib.TIMELINE_SLOTS, 2 + len(LOSSES) + 1), np.int64)
        interval_ns = lib.driver_timeline(self._core, ffi.from_buffer("int64_t[]", rows))
        return Timeline(
            interval_ns,
            late_ns=rows[:, 0],
            kept_ns=rows[:, 1],
            lost=rows[:, 2:-1],
            dropped=rows[:, -1],
        )

    def _histogram(self, which: int) -> Histogram:
        buckets = np.zeros(lib.HISTOGRAM_BUCKETS, np.uint64)
        lib.driver_histogram(self._core, which, ffi.from_buffer("uint64_t[]", buckets))
        return buckets


def _check(done: bool) -> None:
    if not done:
        raise FabricError("the driver could not take in a socket: no memory or descriptors left")
