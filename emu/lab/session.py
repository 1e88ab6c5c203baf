"""A running lab: the network, the shim in it, and the processes that use it.

    lab                          shim (and NICs)
     spawn ─────────────────────▶ starts, takes its own network namespace
     builds nodes                 Ready
     builds veths into it, OVS
     Setup ─────────────────────▶ opens its sockets
                                  Done
     Start ─────────────────────▶ emulates from that moment on

The lab's processes are started first, so that they load while the lab is built.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emu.errors import FabricError, HostError
from emu.lab import marking, ovs
from emu.lab.build import Lab
from emu.lab.channel import Channel
from emu.lab.cpu import CpuMeter
from emu.lab.job import slowdown_of
from emu.lab.messages import Done, Json, Message, Progress, Ready, Request, Setup, Start, Stop
from emu.lab.plan import OVS, SHIM, plan_network, plan_nodes
from emu.lab.routes import route_tables
from emu.lab.subnet import LiveSubnet
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import Spec, spec_from_json
from topologies.graph import Topology

JobResult = tuple[Json, list[int]]
"""What a job came to: JSON, and open files beside it."""

NS_UNTIL_START = 50_000_000
"""Real time from `Start` to the emulated time 0, for every process to be ready by then."""


@dataclass(frozen=True)
class Programs:
    """The commands of the lab's own processes."""

    shim: Sequence[str] = (sys.executable, "-m", "emu.lab.shim_main")
    rnic: Sequence[str] = (sys.executable, "-m", "emu.lab.rnic_main")


@dataclass(frozen=True)
class Session:
    """A lab that is built and set up, and not started yet."""

    spec: Spec
    plane: str
    marker: str
    """`ebpf`, `shim` or `none`."""
    notes: tuple[str, ...]
    """Fallbacks taken when it was built."""
    lab: Lab
    subnet: LiveSubnet | None
    """InfiniBand's management."""
    shim: Channel
    rnic: Channel | None
    workers: dict[str, int]
    """The processes that every frame passes: `shim`, `nics`, `ovs`."""
    setup: Setup
    """What the shim and the NICs were told."""
    shim_told: Json
    """What the shim said when it was set up."""


def open_session(
    request: Request,
    supervisor: Supervisor,
    *,
    with_rnic: bool,
    programs: Programs = Programs(),
) -> Session:
    """Builds the lab of a request and sets up its processes. Raises HostError, FabricError."""
    spec = spec_from_json(request.spec)
    topology = spec.topology.build()
    plane = plane_of(spec)
    supervisor.progress(Progress("building the lab"))
    shim = supervisor.spawn("the shim", programs.shim)
    rnic = supervisor.spawn("the NIC process", programs.rnic) if with_rnic else None
    lab = Lab(supervisor)
    lab.build(plan_nodes(topology, bridges=plane == "ovs"))
    lab.pids[SHIM] = shim.expect(Ready).pid
    datapath = ovs.datapath_type() if plane == "ovs" else None
    routed = spec.fabric == "roce"
    routes = route_tables(spec) if routed else ()
    lab.build(plan_network(topology, datapath=datapath, ip=routed, routes=routes))
    marker, notes = _place_marker(spec, topology, plane, lab, slowdown_of(request.options))
    hosts = {host.name: lab.pids[host.name] for host in topology.hosts}
    subnet = LiveSubnet(spec, topology, supervisor) if spec.fabric == "ib" else None
    options = {**request.options, "subnet": subnet.first.to_json() if subnet else None}
    setup = Setup(request.spec, plane, marker, request.out, hosts, options)
    shim.send(setup, _files_for_shim(lab, subnet))
    workers = {name: pid for name, pid in lab.pids.items() if name in (SHIM, OVS)}
    if rnic is not None:
        workers["nics"] = rnic.expect(Ready).pid
        rnic.send(setup)
        wait_done(rnic)
        for board in rnic.take_files():
            os.close(board)  # nobody looks at a run's board
    told = wait_done(shim)
    return Session(spec, plane, marker, notes, lab, subnet, shim, rnic, workers, setup, told)


def _files_for_shim(lab: Lab, subnet: LiveSubnet | None) -> list[int]:
    """The marker's depth board, or the line to the subnet manager: no fabric has both."""
    if subnet:
        return [subnet.far.fileno()]
    return [lab.marker.board] if lab.marker else []


def plane_of(spec: Spec) -> str:
    """Who forwards. InfiniBand's switches always do so themselves."""
    if spec.plane == "auto":
        return "ovs" if spec.fabric == "roce" else "shim"
    return spec.plane


def start(session: Session) -> None:
    """Starts emulating, all processes from the same moment on."""
    at_ns = time.monotonic_ns() + NS_UNTIL_START
    session.shim.send(Start(at_ns))
    if session.rnic is not None:
        session.rnic.send(Start(at_ns))


def stop(channel: Channel) -> Json:
    """Stops a process's emulation and returns what it measured."""
    channel.send(Stop())
    return wait_done(channel)


def wait_done(channel: Channel, on_progress: Callable[[Progress], None] | None = None) -> Json:
    """The value of a process's next `Done`."""
    while True:
        message: Message = channel.receive()
        if isinstance(message, Done):
            return message.value
        if not isinstance(message, Progress):
            raise FabricError(f"a process of the lab said {message} where it should be done")
        if on_progress is not None:
            on_progress(message)


def notes_of(session: Session) -> list[str]:
    """For the reader of the results, up to now."""
    return [*session.notes, *(session.subnet.notes if session.subnet else ())]


def run_session(
    request: Request, supervisor: Supervisor, programs: Programs = Programs()
) -> JobResult:
    """The job `run`: the spec's traffic from start to end.

    The open files are the observations of the shim and of the NICs.
    """
    session = open_session(request, supervisor, with_rnic=True, programs=programs)
    assert session.rnic is not None
    cpu = CpuMeter(session.workers)
    start(session)
    wait_done(session.rnic, supervisor.progress)
    shim = stop(session.shim)
    result = {
        "plane": session.plane,
        "marker": session.marker,
        "notes": notes_of(session),
        "captures": shim["captures"],
        "cpu_seconds": cpu.used(),
    }
    return result, [*session.shim.take_files(), *session.rnic.take_files()]


def _place_marker(
    spec: Spec, topology: Topology, plane: str, lab: Lab, slowdown: float
) -> tuple[str, tuple[str, ...]]:
    """Who marks, and a note where that is not who was asked for, or has its price."""
    if spec.fabric != "roce" or not spec.marks:
        return "none", ()
    red = marking.plan_red(spec, topology, slowdown)
    if red is not None:
        lab.build([red])
        return "red", (
            "the kernel's RED holds the queues: whether Open vSwitch kept packets too long is not "
            "judged",
        )
    step = marking.plan_marker(spec, topology) if plane == "ovs" else None
    if step is None:
        return "shim", ()
    lab.build([step])
    if lab.marker is not None:
        return "ebpf", ()
    if marking.insists_on_ebpf(spec, topology):
        raise HostError(
            lab.no_marker, remedy="run as root, or set switches.ecn.marker to auto or shim"
        )
    return "shim", (f"the shim marks: {lab.no_marker}",)
