"""A hop over a switch for which Open vSwitch forwards.

    h1 ═══ shim ═══ Open vSwitch ═══ shim ═══ h2

Baseline: Open vSwitch alone, between the same interfaces at its ports, in a lab
without the shim. To reach: 0.6 of its speed.

Frames are sent as fast as they arrive: as many are in flight as the receive buffer
of an Open vSwitch port holds. Sender, shim and Open vSwitch share the machine's
processors with real-time scheduling, as in a run.

Two processors limit the ratio: Open vSwitch alone has one of them to itself, while
here three processes share two. A frame passes two relays in the shim. If these were
the bare loop of relay.py, without cable, queue and clock, the ratio would be about
two thirds. A third processor would raise it.

The slowdown and the rate of the links are chosen so that no frame waits for an
emulated cable, and that the shim takes samples no more often than in a run.
"""

from __future__ import annotations

import ctypes
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emu.bench.in_lab import in_lab
from emu.bench.native import compiled, loops
from emu.bench.row import Row, Target, side_by_side
from emu.bindings.packet_socket import packet_socket
from emu.lab.build import BuiltLab
from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job
from emu.lab.lab_plan import LabRequest
from emu.lab.netns import entered
from emu.lab.netns_holder import keep_host
from emu.lab.ovs import datapath_type
from emu.lab.plan import OVS, SHIM, plan_network, plan_nodes
from emu.lab.routes import route_tables
from emu.lab.rt_sched import be_punctual
from emu.lab.session import JobResult, open_session, start
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import spec_from_json
from topologies.graph import Topology

WINDOWS = {4200: 16, 1100: 64}
"""Bytes of a frame -> frames in flight."""
SLOWDOWN = 100.0
TARGET = Target(0.6)
Ends = tuple[socket.socket, socket.socket]
"""The socket that sends frames, and the socket that receives them."""

_LINKS = [{"between": ["leaf1", host], "rate": "10Tbit", "length": "0m"} for host in ("h1", "h2")]
_SPEC = json.dumps(
    {
        "name": "hop",
        "plane": "ovs",
        "switches": {"latency": "0ns"},
        "topology": {
            "kind": "graph",
            "hosts": ["h1", "h2"],
            "switches": ["leaf1"],
            "links": _LINKS,
        },
    }
)


@message
class HopRate:
    frames_per_second: float
    lost: int
    processor_ns_per_frame: dict[str, float]
    """The processor time per frame of each process that the frames pass."""


@message
class HopRates:
    by_size: dict[int, HopRate]
    """Size of the frames in bytes -> the rate."""


@message
class MeasureHop(Job[HopRates]):
    spec: str
    library: str
    """The compiled sender."""
    frames: int
    out: str = "/"


@message
class MeasureOpenVswitch(Job[HopRates]):
    spec: str
    library: str
    frames: int
    out: str = "/"


def hop_spec() -> str:
    """Two hosts on a switch for which Open vSwitch forwards."""
    return _SPEC


def measure(*, quick: bool) -> list[Row]:
    turns = 2 if quick else 5
    with compiled() as library:
        frames = 20_000 if quick else 50_000
        alone, through = [], []
        for _ in range(turns):
            alone.append(in_lab(MeasureOpenVswitch(_SPEC, str(library), frames)).by_size)
            through.append(in_lab(MeasureHop(_SPEC, str(library), frames)).by_size)
    return [
        side_by_side(
            f"hop by shim, Open vSwitch, shim, {size} bytes",
            "frames/s",
            [rates[size].frames_per_second for rates in through],
            [rates[size].frames_per_second for rates in alone],
            TARGET,
            through=[asdict(rates[size]) for rates in through],
            alone=[asdict(rates[size]) for rates in alone],
        )
        for size in WINDOWS
    ]


def hop(job: MeasureHop, supervisor: Supervisor) -> JobResult:
    """Frames per second from h1 to h2, by frame size, in a complete lab."""
    request = LabRequest(spec_from_json(job.spec), job.out, SLOWDOWN, workload=False)
    session = open_session(request, supervisor)
    start(session)
    pids = session.lab.pids
    ends = (_socket(pids["h1"], "h1-eth0"), _socket(pids["h2"], "h2-eth0"))
    return _rates(job, ends, session.workers), []


def open_vswitch_alone(job: MeasureOpenVswitch, supervisor: Supervisor) -> JobResult:
    """The same between the far ends of the bridge's ports, without the shim."""
    spec = spec_from_json(job.spec)
    topology = spec.topology.build()
    lab = BuiltLab(supervisor)
    lab.build(plan_nodes(topology, bridges=True))
    lab.pids[SHIM] = keep_host()
    routes = route_tables(spec)
    lab.build(plan_network(topology, datapath=datapath_type(), ip=True, routes=routes))
    ends = (_socket(lab.pids[SHIM], "leaf1-eth1"), _socket(lab.pids[SHIM], "leaf1-eth2"))
    return _rates(job, ends, {OVS: lab.pids[OVS]}), []


def _socket(namespace: int, interface: str) -> socket.socket:
    with entered(namespace):
        return packet_socket(interface)


def _rates(
    job: MeasureHop | MeasureOpenVswitch, ends: Ends, workers: Mapping[str, int]
) -> HopRates:
    """For each frame size: the rate, the lost frames, and each worker's time per frame."""
    flood = loops(Path(job.library)).flood
    be_punctual()
    topology = spec_from_json(job.spec).topology.build()
    count = job.frames
    rates = {}
    for size in WINDOWS:
        frame = _frame(topology, size)
        _flood(flood, ends, frame, count // 10)  # warms up
        before = {name: processor_ns(pid) for name, pid in workers.items()}
        spent_ns, lost = _flood(flood, ends, frame, count)
        rates[size] = HopRate(
            frames_per_second=count / spent_ns * 1e9,
            lost=lost,
            processor_ns_per_frame={
                name: (processor_ns(pid) - before[name]) / count for name, pid in workers.items()
            },
        )
    return HopRates(rates)


def _flood(flood: Any, ends: Ends, frame: bytes, count: int) -> tuple[int, int]:
    """Sends `count` frames. Returns the nanoseconds that it took, and the number of lost frames."""
    source, sink = (end.fileno() for end in ends)
    lost = ctypes.c_uint32()
    spent_ns = flood(
        source, sink, frame, len(frame), count, WINDOWS[len(frame)], ctypes.byref(lost)
    )
    return int(spent_ns), lost.value


def processor_ns(pid: int) -> int:
    """The processor time of a process's main thread so far."""
    return int(Path("/proc", str(pid), "schedstat").read_text().split()[0])


def _frame(topology: Topology, size: int) -> bytes:
    """An IPv4 datagram from h1 to h2, as h1 sends it to its leaf."""
    port = topology.ports["h1"][0]
    macs = bytes.fromhex((topology.peer[port].mac + port.mac).replace(":", ""))
    source, destination = topology.host["h1"].ip.packed, topology.host["h2"].ip.packed
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 26 << 2, size - 14, 0, 0, 64, 17, 0, source, destination
    )
    header = header[:10] + _checksum(header) + header[12:]
    udp = struct.pack("!HHHH", 0xC000, 4791, size - 34, 0)
    return macs + b"\x08\x00" + header + udp + bytes(size - 42)


def _checksum(header: bytes) -> bytes:
    """The IPv4 header checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return (~(total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
