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

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from emu.errors import HostError
from emu.lab import ib0, ovs, tun
from emu.lab.build import Lab
from emu.lab.cpu import CpuMeter
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Json, Progress, Ready, Request, Setup, Start, Stop
from emu.lab.job import is_managed, slowdown_of
from emu.lab.marker import marking
from emu.lab.netns import entered
from emu.lab.nic_process import NicProcess, set_up_nics
from emu.lab.plan import OVS, SHIM, plan_network, plan_nodes
from emu.lab.probe import require
from emu.lab.processes import carry_out, set_up, wait_done
from emu.lab.rerouting import LiveRouting
from emu.lab.routes import route_tables
from emu.lab.subnet import LiveSubnet
from emu.lab.supervisor import Supervisor
from emu.measure.recording import MarkedBy
from emu.resources import allow_files
from emu.spec.scenario import Spec, spec_from_json
from topologies.graph import Topology

JobResult = tuple[Json, list[int]]
"""What a job came to: JSON, and open files beside it."""

NS_UNTIL_START = 50_000_000
"""Real time from `Start` to the emulated time 0, for every process to be ready by then."""

_FILES_OF_A_LAB, _FILES_OF_A_PORT = 128, 2
"""What the process with the most of them opens: ovs-vswitchd, 55 for 4 ports and 73 for 16."""


@dataclass(frozen=True)
class Programs:
    """The commands of the lab's own processes."""

    shim: Sequence[str] = (sys.executable, "-m", "emu.lab.shim_main")
    rnic: Sequence[str] = (sys.executable, "-m", "emu.lab.rnic_main")
    tcp: Sequence[str] = (sys.executable, "-m", "emu.lab.tcp.tcp_main")


@dataclass(frozen=True)
class Session:
    """A lab that is built and set up, and not started yet."""

    spec: Spec
    plane: str
    marker: MarkedBy
    notes: tuple[str, ...]
    """Fallbacks taken when it was built."""
    lab: Lab
    subnet: LiveSubnet | None
    """InfiniBand's management."""
    routing: LiveRouting | None
    """On Ethernet, where links may be lost that the spec does not name."""
    shim: Channel
    rnic: Channel | None
    tcp: Channel | None
    """Who has the spec's TCP flows, where it has some."""
    workers: dict[str, int]
    """The processes that every frame passes: `shim`, `nics`, `ovs`."""
    setup: Setup
    """What the shim and the first NICs were told."""
    shim_told: Json
    """What the shim said when it was set up."""
    nics: NicProcess | None
    """Those that there are at first."""

    @property
    def has_ip(self) -> bool:
        """Whether the kernels of hosts reach each other: on InfiniBand by ib0."""
        return self.spec.fabric_kind.is_ethernet or bool(self.setup.options["ip"])


def open_session(
    request: Request,
    supervisor: Supervisor,
    *,
    with_rnic: bool,
    programs: Programs = Programs(),
) -> Session:
    """Builds the lab of a request and sets up its processes. Raises HostError, FabricError.

    Without the spec's workload InfiniBand's NICs are there nevertheless, for IP.
    """
    spec = spec_from_json(request.spec)
    topology = spec.topology.build()
    allow_files(_FILES_OF_A_LAB + _FILES_OF_A_PORT * len(topology.peer))
    plane = spec.plane_in_use
    supervisor.progress(Progress("building the lab"))
    with_tcp = with_rnic and bool(spec.streams().flows)
    wants_ip = not with_rnic and bool(request.options.get("ip", True))
    with_ip, no_ip = _ask_for_ip(spec, wanted=wants_ip, needed=with_tcp)
    shim = supervisor.spawn("the shim", programs.shim)
    rnic = supervisor.spawn("the NIC process", programs.rnic) if with_rnic or with_ip else None
    tcp = supervisor.spawn("the TCP process", programs.tcp) if with_tcp else None
    lab = Lab(supervisor)
    infiniband = not spec.fabric_kind.is_ethernet
    lab.build(plan_nodes(topology, bridges=plane == "ovs", infiniband=infiniband))
    lab.pids[SHIM] = shim.expect(Ready).pid
    datapath = _datapath(spec, topology) if plane == "ovs" else None
    routed = not spec.fabric_kind.has_subnet_manager
    live = is_managed(spec, request.options)
    routes = route_tables(spec, live=live) if routed else ()
    mtu = spec.ip_mtu if with_ip else None
    lab.build(plan_network(topology, datapath=datapath, ip=routed, routes=routes, ib0_mtu=mtu))
    marker, notes = _place_marker(spec, topology, plane, lab, slowdown_of(request.options))
    hosts = {host.name: lab.pids[host.name] for host in topology.hosts}
    subnet = None
    if infiniband:
        subnet = LiveSubnet(spec, topology, supervisor, everybody=with_ip or not with_rnic)
    told = subnet.connect() if subnet else None
    options = {**request.options, "subnet": told, "ip": with_ip}
    setup = Setup(request.spec, plane, marker, request.out, hosts, options)
    routing = LiveRouting(spec, bridges=plane == "ovs") if routed and live else None
    shim.send(setup, _files_for_shim(lab, subnet or routing))
    workers = {name: pid for name, pid in lab.pids.items() if name in (SHIM, OVS)}
    nics = None
    if rnic is not None:
        nics = set_up_nics(rnic, setup if with_rnic else idle(setup), spec.name)
        workers["nics"] = nics.pid
    if tcp is not None:
        set_up(tcp, setup)
    told = wait_done(shim)
    notes += no_ip
    return Session(
        spec=spec,
        plane=plane,
        marker=marker,
        notes=notes,
        lab=lab,
        subnet=subnet,
        routing=routing,
        shim=shim,
        rnic=rnic,
        tcp=tcp,
        workers=workers,
        setup=setup,
        shim_told=told,
        nics=nics,
    )


def _files_for_shim(lab: Lab, manager: LiveSubnet | LiveRouting | None) -> list[int]:
    """The line to whoever routes anew, where there is somebody, and then what the marker shares."""
    line = [manager.far.fileno()] if manager else []
    return line + ([lab.marker.board, lab.marker.curves] if lab.marker else [])


def idle(setup: Setup) -> Setup:
    """For NICs that have nothing to do but IP, as long as they are there."""
    return replace(setup, options={**setup.options, "idle": True})


def setup_now(session: Session) -> Setup:
    """For NICs that take the place of all there were: with path records' levels of now."""
    if session.subnet is None:
        return session.setup
    options = {**session.setup.options, "subnet": session.subnet.connect()}
    return replace(session.setup, options=options)


def start(session: Session) -> int:
    """Starts emulating, all processes from the same moment on.

    Returns it, in ns of CLOCK_MONOTONIC; it has not come yet.
    """
    at_ns = time.monotonic_ns() + NS_UNTIL_START
    for process in (session.shim, session.rnic, session.tcp):
        if process is not None:
            process.send(Start(at_ns))
    return at_ns


def stop(channel: Channel) -> Json:
    """Stops a process's emulation and returns what it measured."""
    channel.send(Stop())
    return wait_done(channel)


def notes_of(session: Session) -> list[str]:
    """For the reader of the results, up to now."""
    watchers = (session.subnet, session.routing, session.lab.links)
    return [*session.notes, *(note for one in watchers if one for note in one.notes)]


def run_session(
    request: Request, supervisor: Supervisor, programs: Programs = Programs()
) -> JobResult:
    """The job `run`: the spec's traffic from start to end.

    The open files are the observations of the shim and of the NICs.
    """
    session = open_session(request, supervisor, with_rnic=True, programs=programs)
    assert session.rnic is not None
    cpu = CpuMeter(session.workers)
    with cpu.sampling(start(session)) as looks:
        streams = carry_out(session.rnic, session.tcp, supervisor.progress)
    shim = stop(session.shim)
    result = {
        "plane": session.plane,
        "marker": session.marker,
        "notes": [*notes_of(session), *streams["notes"], *_kernel_drops(session.lab)],
        "streams": streams["flows"],
        "captures": shim["captures"],
        "cpu": looks.to_json(),
    }
    return result, [*session.shim.take_files(), *session.rnic.take_files()]


def _kernel_drops(lab: Lab) -> list[str]:
    """A note on packets that the kernel dropped at the ends of the lab's cables."""
    from emu.lab.net_reading import drops_note, interfaces  # as late as `build` imports pyroute2

    with entered(lab.pids[SHIM]):
        note = drops_note(interfaces().values())
    return [note] if note else []


def _ask_for_ip(spec: Spec, *, wanted: bool, needed: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether InfiniBand's hosts get an ib0, and a note where the machine does not let them.

    Raises HostError where it is needed.
    """
    if spec.fabric_kind.is_ethernet or not (wanted or needed):
        return False, ()
    missing = ib0.why_missing()
    if missing and needed:
        raise HostError(f"TCP on InfiniBand needs ib0: {missing}", remedy=tun.REMEDY)
    return not missing, (f"hosts have no ib0, so no IP: {missing}",) if missing else ()


def _datapath(spec: Spec, topology: Topology) -> str:
    """Open vSwitch's. Raises HostError where only the kernel's will do, and is not there."""
    if marking.plan_red(spec, topology, slowdown=1) is None:
        return ovs.datapath_type()
    require("kernel RED", "kernel datapath")
    return ovs.KERNEL_DATAPATH


def _place_marker(
    spec: Spec, topology: Topology, plane: str, lab: Lab, slowdown: float
) -> tuple[MarkedBy, tuple[str, ...]]:
    """Who marks, and a note where that is not who was asked for, or has its price."""
    if not spec.marks_ce:
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
