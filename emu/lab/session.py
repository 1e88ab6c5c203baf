"""Carries out the plan of a lab: builds it, and sets up and starts its processes.

    lab                          shim (and NICs)
     spawn ─────────────────────▶ starts, takes its own network namespace
     builds nodes                 Ready
     builds veths into it, OVS
     a set-up ──────────────────▶ opens its sockets
                                  an answer
     Start ─────────────────────▶ emulates from that moment on

The lab's processes are started first, so that they load while the lab is built.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from emu.bindings.exact_driver import shared_memory
from emu.errors import HostError
from emu.lab import ib0, ovs
from emu.lab.build import BuiltLab
from emu.lab.cpu import CpuMeter
from emu.lab.exact_subnet import ExactSubnet
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.jobs import RunExact, RunResult, RunTraffic
from emu.lab.ipc.messages import Progress, Ready, Start, Stop
from emu.lab.ipc.setup import ExactDone, SetUpNics, SetUpShim, SetUpTcp, ShimReady, ShimStopped
from emu.lab.lab_plan import LabPlan, LabRequest, plan_lab
from emu.lab.live_subnet import LiveSubnet
from emu.lab.netns import entered
from emu.lab.nic_process import NicProcess, set_up_nics
from emu.lab.plan import OVS, SHIM
from emu.lab.probe import require
from emu.lab.processes import carry_out, set_up_tcp, wait_for, wait_for_all
from emu.lab.rerouting import LiveRouting, StaticRouting
from emu.lab.supervisor import Supervisor
from emu.measure.cpu import CpuSamples
from emu.measure.records import MarkedBy
from emu.resources import allow_files
from emu.spec.scenario import Spec, spec_from_json

JobResult = tuple[Message, list[int]]
"""The result of a job: a message and its open files."""

NS_UNTIL_START = 50_000_000
"""Real time from `Start` to emulated time 0, in which every process gets ready."""


@dataclass(frozen=True)
class Programs:
    """The commands of the lab's own processes."""

    shim: Sequence[str] = (sys.executable, "-m", "emu.lab.shim_main")
    rnic: Sequence[str] = (sys.executable, "-m", "emu.lab.rnic_main")
    tcp: Sequence[str] = (sys.executable, "-m", "emu.lab.tcp.tcp_main")
    verbs: Sequence[str] = (sys.executable, "-m", "emu.verbs.nic_main")


class ThisMachine:
    """The capabilities of the machine that the lab runs on."""

    def why_no_ib0(self) -> str:
        return ib0.why_missing()

    def datapath(self, *, kernel: bool) -> str:
        if not kernel:
            return ovs.datapath_type()
        require("kernel RED", "kernel datapath")
        return ovs.KERNEL_DATAPATH


@dataclass(frozen=True)
class Session:
    """A lab that is built and set up."""

    plan: LabPlan
    marker: MarkedBy
    """The marker in use; differs from the plan's if eBPF could not be loaded."""
    notes: tuple[str, ...]
    """Notes for the reader of the results, for example fallbacks."""
    lab: BuiltLab
    subnet: LiveSubnet | None
    """The subnet manager, on InfiniBand."""
    routing: LiveRouting | None
    """The rerouting of an interactive lab on Ethernet."""
    shim: Channel
    rnic: Channel | None
    tcp: Channel | None
    """The process of the spec's TCP flows; None if it has none."""
    workers: dict[str, int]
    """The processes that handle frames: `shim`, `nics`, `ovs`."""
    shim_ready: ShimReady
    nics: NicProcess | None
    """The first NICs."""

    @property
    def spec(self) -> Spec:
        return self.plan.request.spec

    @property
    def plane(self) -> str:
        return self.plan.plane

    @property
    def has_ip(self) -> bool:
        """Whether hosts can send IP packets to each other; on InfiniBand by ib0."""
        return self.spec.fabric_kind.is_ethernet or self.plan.ib0

    def nic_setup(self, *, idle: bool = False, starts: int = 0) -> SetUpNics:
        """The set-up of NICs that replace all others. They use the present service levels of path
        records."""
        setup = _nic_setup(self.plan, self.lab, self.subnet)
        return replace(setup, idle=idle, starts=starts)

    def tcp_setup(self) -> SetUpTcp:
        return _tcp_setup(self.plan, self.lab)


def open_session(
    request: LabRequest, supervisor: Supervisor, programs: Programs = Programs()
) -> Session:
    """Builds a lab and sets up its processes. Raises HostError, FabricError."""
    supervisor.progress(Progress("building the lab"))
    return _carry_out(plan_lab(request, ThisMachine()), supervisor, programs)


def _carry_out(plan: LabPlan, supervisor: Supervisor, programs: Programs) -> Session:
    allow_files(plan.open_files)
    shim = supervisor.spawn("the shim", programs.shim)
    rnic = supervisor.spawn("the NIC process", programs.rnic) if plan.nics else None
    tcp = supervisor.spawn("the TCP process", programs.tcp) if plan.tcp else None
    lab = _build(plan, supervisor, shim)
    marker, marker_notes = _attach_marker(plan, lab)
    subnet, routing = _start_routing(plan, lab, supervisor)
    memory = None
    if plan.request.exact and plan.request.workload:
        memory = shared_memory(len(plan.request.spec.topology.build().hosts))
    _send_shim_setup(plan, lab, shim, marker, subnet or routing, memory)
    nics = None
    if rnic is not None:
        setup = replace(_nic_setup(plan, lab, subnet), idle=plan.nics == "idle")
        files = [] if memory is None else [memory]
        nics = set_up_nics(rnic, setup, plan.request.spec.name, files)
    if tcp is not None:
        set_up_tcp(tcp, _tcp_setup(plan, lab))
    return Session(
        plan=plan,
        marker=marker,
        notes=(*marker_notes, *plan.notes),
        lab=lab,
        subnet=subnet,
        routing=routing,
        shim=shim,
        rnic=rnic,
        tcp=tcp,
        workers=_workers(lab, nics),
        shim_ready=wait_for(shim, ShimReady),
        nics=nics,
    )


def _build(plan: LabPlan, supervisor: Supervisor, shim: Channel) -> BuiltLab:
    lab = BuiltLab(supervisor)
    lab.build(plan.nodes)
    lab.pids[SHIM] = shim.expect(Ready).pid
    lab.build(plan.network)
    return lab


def _attach_marker(plan: LabPlan, lab: BuiltLab) -> tuple[MarkedBy, tuple[str, ...]]:
    """The marker in use, and a note if it is not the planned one."""
    if plan.marker_step is not None:
        lab.build([plan.marker_step])
    if plan.marker != "ebpf" or lab.marker is not None:
        return plan.marker, ()
    if plan.ebpf_is_required:
        raise HostError(
            lab.no_marker, remedy="run as root, or set switches.ecn.marker to auto or shim"
        )
    return "shim", (f"the shim marks: {lab.no_marker}",)


def _start_routing(
    plan: LabPlan, lab: BuiltLab, supervisor: Supervisor
) -> tuple[LiveSubnet | None, LiveRouting | None]:
    spec = plan.request.spec
    if plan.routing == "subnet manager" and plan.request.exact:
        return ExactSubnet(spec, spec.topology.build(), supervisor), None
    if plan.routing == "subnet manager":
        all_hosts = plan.ib0 or not plan.request.workload
        return LiveSubnet(spec, spec.topology.build(), supervisor, all_hosts=all_hosts), None
    if plan.routing == "lab":
        routing = _routing_of(plan, lab)
        routing.attend()
        return None, routing
    return None, None


def _routing_of(plan: LabPlan, lab: BuiltLab) -> LiveRouting:
    spec, bridges = plan.request.spec, plan.plane == "ovs"
    if not spec.has_bgp:
        return StaticRouting(spec, bridges=bridges)
    from emu.lab.frr.live_bgp import ExactBgp, RealBgp  # takes time, and few labs need it

    if plan.request.exact:
        return ExactBgp(spec, bridges=bridges)
    systems = {switch: lab.pids[switch] for switch in spec.topology.build().switch}
    return RealBgp(spec, systems, bridges=bridges, slowdown=plan.request.slowdown)


def _send_shim_setup(
    plan: LabPlan,
    lab: BuiltLab,
    shim: Channel,
    marker: MarkedBy,
    manager: LiveSubnet | LiveRouting | None,
    memory: int | None,
) -> None:
    request = plan.request
    cpu_ports = manager.cpu_ports if isinstance(manager, LiveRouting) else None
    setup = SetUpShim(
        spec=request.spec.to_json(),
        slowdown=request.slowdown,
        interactive=request.interactive,
        plane=plan.plane,
        marker=marker,
        out=request.out,
        subnet=manager.connect() if isinstance(manager, LiveSubnet) else request.subnet,
        rerouted=manager is not None,
        cpu_ports=cpu_ports.interfaces if cpu_ports else {},
        exact=request.exact,
    )
    files = [manager.far.fileno()] if manager else []
    files += [cpu_ports.socket.fileno()] if cpu_ports else []
    shared = [lab.marker.depths, lab.marker.curves] if lab.marker else []
    if request.exact:
        files += [] if memory is None else [memory]
        shared = [lab.marker.program, *shared] if lab.marker else []
    shim.send(setup, files + shared)


def _nic_setup(plan: LabPlan, lab: BuiltLab, subnet: LiveSubnet | None) -> SetUpNics:
    request = plan.request
    return SetUpNics(
        spec=request.spec.to_json(),
        slowdown=request.slowdown,
        interactive=request.interactive,
        hosts=_tasks_of_hosts(plan, lab),
        subnet=subnet.connect() if subnet else request.subnet,
        ip=plan.ib0,
        exact=request.exact,
        out=request.out,
    )


def _tcp_setup(plan: LabPlan, lab: BuiltLab) -> SetUpTcp:
    request = plan.request
    return SetUpTcp(request.spec.to_json(), request.slowdown, _tasks_of_hosts(plan, lab))


def _tasks_of_hosts(plan: LabPlan, lab: BuiltLab) -> dict[str, int]:
    hosts = plan.request.spec.topology.build().hosts
    return {host.name: lab.pids[host.name] for host in hosts}


def _workers(lab: BuiltLab, nics: NicProcess | None) -> dict[str, int]:
    workers = {name: pid for name, pid in lab.pids.items() if name in (SHIM, OVS)}
    return workers if nics is None else {**workers, "nics": nics.pid}


def start(session: Session) -> int:
    """Starts the emulation of all processes at the same moment, and then the control plane.

    Returns that moment, in ns of CLOCK_MONOTONIC; it may be in the near future.
    """
    at_ns = time.monotonic_ns() + NS_UNTIL_START
    for process in (session.shim, session.rnic, session.tcp):
        if process is not None:
            process.send(Start(at_ns))
    if session.routing is not None:
        session.routing.start()
    return at_ns


def stop(shim: Channel) -> ShimStopped:
    """Stops the shim. Its observation arrives as an open file on the channel."""
    shim.send(Stop())
    return wait_for(shim, ShimStopped)


def notes_of(session: Session) -> tuple[str, ...]:
    """The notes for the reader of the results, up to now."""
    lab = session.lab
    watchers = (session.subnet, session.routing, lab.links, lab.routes)
    return (*session.notes, *(note for one in watchers if one for note in one.notes))


def run_session(
    job: RunTraffic, supervisor: Supervisor, programs: Programs = Programs()
) -> JobResult:
    """The job of `emu run`: carries out the spec's traffic.

    The open files are the observations of the shim and of the NICs.
    """
    request = LabRequest(spec_from_json(job.spec), job.out, job.slowdown, workload=True)
    session = open_session(request, supervisor, programs)
    assert session.rnic is not None
    cpu = CpuMeter(session.workers)
    with cpu.sampling(start(session)) as samples:
        streams = carry_out(session.rnic, session.tcp, supervisor.progress)
    stopped = stop(session.shim)
    result = RunResult(
        plane=session.plane,
        marker=session.marker,
        notes=(*notes_of(session), *streams.notes, *_kernel_drops(session.lab)),
        streams=streams.flows,
        captures=stopped.captures,
        cpu=samples.samples(),
    )
    return result, [*session.shim.take_files(), *session.rnic.take_files()]


def run_exact(job: RunExact, supervisor: Supervisor, programs: Programs = Programs()) -> JobResult:
    """The job of `emu run --clock exact`; as `run_session`."""
    supervisor.end_when_stopped()
    request = LabRequest(
        spec_from_json(job.spec), job.out, 1, workload=True, exact=True, subnet=job.subnet
    )
    session = open_session(request, supervisor, programs)
    assert session.rnic is not None
    start(session)
    done = wait_for_all([session.shim, session.rnic], ExactDone, supervisor.progress)
    foreign = sum(process.foreign for process in done)
    result = RunResult(
        plane=session.plane,
        marker=session.marker,
        notes=(*notes_of(session), *_foreign_note(foreign)),
        streams=(),
        captures={name: path for process in done for name, path in process.captures.items()},
        cpu=CpuSamples((), {}),
    )
    return result, [*session.shim.take_files(), *session.rnic.take_files()]


def _foreign_note(frames: int) -> tuple[str, ...]:
    if not frames:
        return ()
    return (
        f"{frames} frames came from programs or the kernel, at times of this machine: "
        "another run may give other results",
    )


def _kernel_drops(lab: BuiltLab) -> tuple[str, ...]:
    """A note about packets that the kernel dropped at the ends of the lab's cables."""
    from emu.lab.net_reading import drops_note, interfaces  # imports pyroute2

    with entered(lab.pids[SHIM]):
        note = drops_note(interfaces().values())
    return (note,) if note else ()
