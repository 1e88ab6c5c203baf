"""The shim's relay: frames through one cable between two veths.

    in ═══ in   [ the cable, in this process ]   out ═══ out

Baseline: a bare loop of recvmmsg and sendmmsg between the same two interfaces,
without a cable and a queue. To reach: 0.8 of its speed.

Frames are first sent to the cable and then relayed, so that nothing else runs at the
same time. The figure is frames per second of processor time, so that other programs
on the machine do not change it. There is no receiver at the far end of `out`: the
kernel drops the frames there.

The sender's work for a relay counts as the relay's own: putting frames into a
socket's buffer, or copying them to a ring. It is the time of sending with the relay's
socket minus the time of sending without it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from emu._core import ffi, lib
from emu.bench.in_lab import in_lab
from emu.bench.native import compiled, loops
from emu.bench.row import Row, Target, side_by_side
from emu.bindings.packet_socket import packet_socket
from emu.bindings.port_config import cable_end_config
from emu.fabric_kind import ROCE
from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job
from emu.lab.net_steps import AddVeth, SetUp
from emu.lab.netlink import carry_out
from emu.lab.netns import entered, write_sysctl
from emu.lab.netns_holder import keep_host
from emu.lab.session import JobResult
from emu.lab.shim import RING_FRAMES
from emu.lab.supervisor import Supervisor

SIZES = (4200, 1100)
TARGET = Target(0.8)
_MTU = 4200
_FRAMES = 800
"""Frames in the buffer at a time, within the backlog of a cable end."""
_ROUNDS = 10
_ETHERTYPE = b"\x88\xb5"
"""The first local experimental ethertype of IEEE 802, which no protocol uses."""

Relay = Callable[[], int]
"""Relays all waiting frames, and returns their number."""


Rates = dict[int, tuple[float, ...]]
"""Frame size -> frames per second in each turn."""


@message
class RelayRates:
    cable: Rates
    bare_loop: Rates


@message
class MeasureRelay(Job[RelayRates]):
    library: str
    """The compiled bare loop."""
    turns: int
    out: str = "/"


def measure(*, quick: bool) -> list[Row]:
    with compiled() as library:
        rates = in_lab(MeasureRelay(str(library), turns=5 if quick else 15))
    return [
        side_by_side(
            f"relay, one cable, {size} bytes",
            "frames/s",
            rates.cable[size],
            rates.bare_loop[size],
            TARGET,
        )
        for size in SIZES
    ]


def job(job: MeasureRelay, supervisor: Supervisor) -> JobResult:
    """The rates of both relays, by frame size."""
    pids = {"relay": os.getpid(), "ends": keep_host()}
    for pid in pids.values():
        with entered(pid):  # without IPv6, the kernel sends no frames of its own
            write_sysctl("net.ipv6.conf.default.disable_ipv6", "1")
    carry_out([AddVeth("relay", name, "ends", _MTU) for name in ("in", "out")], pids)
    carry_out([SetUp(namespace, name) for namespace in pids for name in ("in", "out")], pids)
    with entered(pids["ends"]):
        source = packet_socket("in")
    bare = loops(Path(job.library))
    cable: Rates = dict.fromkeys(SIZES, ())
    bare_loop: Rates = dict.fromkeys(SIZES, ())
    for size in SIZES:
        frame = bytes(12) + _ETHERTYPE + bytes(size - 14)

        def fill(frame: bytes = frame) -> None:
            bare.fill(source.fileno(), frame, len(frame), _FRAMES)

        for _ in range(job.turns):
            sending_ns = _spent_ns(fill)
            for rates, relay in ((bare_loop, _bare_loop(bare)), (cable, _cable())):
                with relay as relays:
                    rates[size] = (*rates[size], _rate(fill, relays, sending_ns))
    return RelayRates(cable, bare_loop), []


def _rate(fill: Callable[[], None], relay: Relay, sending_ns: int) -> float:
    """Frames per second of this thread's time. `sending_ns`: the time to send them without a
    relay."""
    relayed = 0

    def fill_and_relay() -> None:
        nonlocal relayed
        fill()
        relayed += relay()

    spent_ns = _spent_ns(fill_and_relay) - sending_ns
    assert relayed == _ROUNDS * _FRAMES, f"{relayed} frames of {_ROUNDS * _FRAMES} were relayed"
    return relayed / spent_ns * 1e9


def _spent_ns(once: Callable[[], None]) -> int:
    """This thread's processor time for all rounds."""
    began = time.thread_time_ns()
    for _ in range(_ROUNDS):
        once()
    return time.thread_time_ns() - began


@contextmanager
def _bare_loop(bare: ctypes.CDLL) -> Iterator[Relay]:
    with packet_socket("in") as inwards, packet_socket("out") as outwards:
        yield lambda: int(bare.relay(inwards.fileno(), outwards.fileno()))


@contextmanager
def _cable() -> Iterator[Relay]:
    """A cable of 100 Gbit/s between two sockets, on the real clock."""
    config = ffi.new("struct fabric_config *")
    config.seed, config.ports, config.parts, config.threads = 1, 2, 1, 1
    config.small_frames, config.large_frames, config.frame_bytes = 4096, 4096, 4352
    fabric = lib.fabric_new(config)
    wake, other = os.pipe()
    driver = lib.driver_new(fabric, 1.0, wake)
    with packet_socket() as wire:
        channel = lib.driver_add_channel(driver, wire.fileno(), RING_FRAMES)
        end = cable_end_config(ROCE)
        for index, interface in enumerate(("in", "out")):
            lib.fabric_add_socket(fabric, index, end)
            lib.driver_attach_end(driver, channel, socket.if_nametoindex(interface), index, False)
        lib.fabric_connect(fabric, 0, 1, 100_000_000_000, 0)
        lib.fabric_start(fabric)
        start_ns = time.monotonic_ns()

        def relay() -> int:
            before = lib.driver_frames_sent(driver)
            while lib.driver_frames_sent(driver) - before < _FRAMES:
                lib.driver_run(driver, start_ns, 0)
            return int(lib.driver_frames_sent(driver) - before)

        yield relay
        lib.driver_free(driver)
    lib.fabric_free(fabric)
    os.close(wake)
    os.close(other)
