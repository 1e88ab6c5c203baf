"""All decisions about a lab, taken before anything is started.

    request, machine ── plan_lab ──▶ LabPlan ── open_session (session.py) ──▶ Session

A plan is a value: it can be printed and compared, and making one needs no root. One decision
waits until the lab is built: whether the kernel loads the eBPF marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from emu.errors import HostError
from emu.lab import management_network, tun
from emu.lab.marker import marking
from emu.lab.out_of_band import plan as out_of_band
from emu.lab.out_of_band.network import Network
from emu.lab.plan import AttachMarker, PlaceRed, Step, plan_network, plan_nodes
from emu.lab.routes import RouteTable, route_tables
from emu.measure.records import MarkedBy
from emu.spec.scenario import Spec
from emu.subnet.subnet import Subnet
from topologies.graph import Topology

_FILES_OF_A_LAB, _FILES_OF_A_PORT = 128, 2
"""Limits on open files. ovs-vswitchd needs the most: 55 for 4 ports and 73 for 16."""

_NO_IB0 = "hosts have no ib0: the exact clock has none"
_IPOIB_NOTE = f"{_NO_IB0}; their IP addresses are on a management network apart from the fabric"
_NO_IP_NOTE = f"{_NO_IB0}, nor a management network, as its bridge has too few ports; so no IP"
_NAMES_NOTE = "names of hosts lead to a management network apart from the fabric"

_RED_NOTE = (
    "the kernel's RED holds the queues: whether Open vSwitch kept packets too long is not judged"
)


@dataclass(frozen=True)
class LabRequest:
    """The caller's choices."""

    spec: Spec
    out: str
    """The folder for captures, absolute."""
    slowdown: float
    workload: bool
    """Whether the spec's traffic starts with the lab."""
    interactive: bool = False
    """Whether users may read counters and set faults at any time."""
    ip: bool = True
    """Whether InfiniBand's hosts get an ib0 if the machine allows it; with a workload, only if it
    has TCP flows."""

    exact: bool = False
    """Whether emulated time waits for frames."""
    stays_up: bool = False
    """Whether the lab serves commands until it is ended; only then it has what `management` of the
    spec describes."""
    subnet: Subnet | None = None
    """With `exact` and a workload, on InfiniBand: the subnet manager's decisions for the run."""

    @staticmethod
    def interactive_lab(spec: Spec, out: str, slowdown: float, *, ip: bool = True) -> LabRequest:
        """The request for a lab that a user controls; it starts no traffic."""
        return LabRequest(spec, out, slowdown, workload=False, interactive=True, ip=ip)

    @staticmethod
    def interactive_exact_lab(spec: Spec, out: str) -> LabRequest:
        """The same on the exact clock. There NICs come and go with traffic, so they carry no IP."""
        return LabRequest(spec, out, 1, workload=False, interactive=True, ip=False, exact=True)


class Machine(Protocol):
    """Capabilities of the machine that a plan depends on."""

    def why_no_ib0(self) -> str:
        """Why hosts cannot have an ib0; empty if they can."""

    def datapath(self, *, kernel: bool) -> str:
        """Open vSwitch's datapath type. `kernel`: the kernel's datapath is required.

        Raises HostError if the machine lacks it."""


@dataclass(frozen=True)
class LabPlan:
    """All decisions about one lab."""

    request: LabRequest
    plane: Literal["ovs", "shim"]
    """The plane that forwards frames."""
    routing: Literal["subnet manager", "lab"] | None
    """What routes again when links change. None: all changes are in the spec and planned for."""
    nics: Literal["workload", "idle"] | None
    """The purpose of the first NIC process; idle NICs only serve ib0. None: no NIC process."""
    tcp: bool
    """Whether there is a process for TCP flows."""
    ib0: bool
    """Whether InfiniBand's hosts have an ib0."""
    management: bool
    """Whether the hosts have a network for their names, apart from the fabric."""
    out_of_band: Network | None
    """The management network of the spec; None: no such network."""
    nodes: tuple[Step, ...]
    """The steps carried out while the shim starts."""
    network: tuple[Step, ...]
    """The steps carried out once the shim is in its namespace."""
    marker: MarkedBy
    marker_step: AttachMarker | PlaceRed | None
    ebpf_is_required: bool
    """Whether the spec names eBPF as a marker; the shim must not mark instead then."""
    open_files: int
    """The limit on open files that a process of the lab may need."""
    notes: tuple[str, ...]
    """Notes for the reader of the results."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"forwarded by {self.plane}, marked by {self.marker}, routed again by {self.routing}"
        yield f"NICs: {self.nics}, TCP: {self.tcp}, ib0: {self.ib0}"
        yield from self.notes
        yield from map(repr, self.nodes)
        yield from map(repr, self.network)
        if self.marker_step is not None:
            yield repr(self.marker_step)


def plan_lab(request: LabRequest, machine: Machine) -> LabPlan:
    """The plan of a lab. Raises HostError if the machine lacks something that the spec needs."""
    spec, plane = request.spec, request.spec.plane_in_use
    topology = spec.topology.build()
    tcp = request.workload and bool(spec.streams().flows)
    with_ib0, ib0_notes = _decide_ib0(request, machine, needed=tcp)
    marker, step, marker_notes = _plan_marker(request, topology, plane)
    nodes = plan_nodes(
        topology,
        bridges=plane == "ovs",
        infiniband=not spec.fabric_kind.is_ethernet,
        systems=has_systems(request),
    )
    network = _network(request, topology, plane, machine, ib0=with_ib0, red=marker == "red")
    own = out_of_band_network(request, topology)
    if own is not None:
        nodes += out_of_band.namespaces_of(own)
        network += out_of_band.steps_of(own)
    return LabPlan(
        request,
        plane=plane,
        routing=_routing(request),
        nics="workload" if request.workload else "idle" if with_ib0 else None,
        tcp=tcp,
        ib0=with_ib0,
        management=has_management(request, topology),
        out_of_band=own,
        nodes=tuple(nodes),
        network=tuple(network),
        marker=marker,
        marker_step=step,
        ebpf_is_required=marking.insists_on_ebpf(spec, topology),
        open_files=_FILES_OF_A_LAB + _FILES_OF_A_PORT * len(topology.peer),
        notes=(*marker_notes, *ib0_notes),
    )


def has_management(request: LabRequest, topology: Topology) -> bool:
    """Whether the hosts get a network for their names."""
    return request.interactive and management_network.is_part_of(topology, exact=request.exact)


def has_systems(request: LabRequest) -> bool:
    """Whether each switch has an operating system of its own, in which FRR runs: where its packets
    cross the emulated cables."""
    return request.interactive and request.spec.has_bgp and not request.exact


def out_of_band_network(request: LabRequest, topology: Topology) -> Network | None:
    """The management network of the spec, in a lab that stays up."""
    settings = request.spec.management
    return Network(topology, settings) if settings is not None and request.stays_up else None


def _routing(request: LabRequest) -> Literal["subnet manager", "lab"] | None:
    if request.exact and request.workload:
        return None
    if request.spec.fabric_kind.has_subnet_manager:
        return "subnet manager"
    return "lab" if request.interactive else None


def _network(
    request: LabRequest, topology: Topology, plane: str, machine: Machine, *, ib0: bool, red: bool
) -> list[Step]:
    spec = request.spec
    routed = not spec.fabric_kind.has_subnet_manager
    routes: tuple[RouteTable, ...] = ()
    if routed:
        routes = tuple(route_tables(spec, live=request.interactive))
    return plan_network(
        topology,
        datapath=machine.datapath(kernel=red) if plane == "ovs" else None,
        ip=routed,
        routes=routes,
        ib0_mtu=spec.ip_mtu if ib0 else None,
        punctual=not request.exact,
        quick_ack=request.exact,
        management=has_management(request, topology),
    )


def _decide_ib0(
    request: LabRequest, machine: Machine, *, needed: bool
) -> tuple[bool, tuple[str, ...]]:
    """Whether InfiniBand's hosts get an ib0, and a note if the machine does not allow it.

    Raises HostError if the machine does not allow it and it is needed.
    """
    wanted = needed or (request.ip and not request.workload)
    if request.spec.fabric_kind.is_ethernet or not wanted:
        return False, _notes_of_exact_lab(request)
    missing = machine.why_no_ib0()
    if missing and needed:
        raise HostError(f"TCP on InfiniBand needs ib0: {missing}", remedy=tun.REMEDY)
    return not missing, (f"hosts have no ib0, so no IP: {missing}",) if missing else ()


def _notes_of_exact_lab(request: LabRequest) -> tuple[str, ...]:
    if not (request.exact and request.interactive):
        return ()
    has_network = has_management(request, request.spec.topology.build())
    if request.spec.fabric_kind.is_ethernet:
        return (_NAMES_NOTE,) if has_network else ()
    return (_IPOIB_NOTE,) if has_network else (_NO_IP_NOTE,)


def _plan_marker(
    request: LabRequest, topology: Topology, plane: str
) -> tuple[MarkedBy, AttachMarker | PlaceRed | None, tuple[str, ...]]:
    """What marks packets CE, the step that starts it, and notes."""
    spec = request.spec
    if not spec.marks_ce:
        return "none", None, ()
    red = marking.plan_red(spec, topology, request.slowdown)
    if red is not None:
        return "red", red, (_RED_NOTE,)
    ebpf = marking.plan_marker(spec, topology, at_join=request.exact) if plane == "ovs" else None
    return ("ebpf", ebpf, ()) if ebpf is not None else ("shim", None, ())
