"""Settings of the eBPF marker and of the kernel's RED, from the spec."""

from __future__ import annotations

from emu.lab.marker.marker import PRIORITIES, MarkedPort, Wred
from emu.lab.marker.red import Red
from emu.lab.plan import AttachMarker, PlaceRed, port_indexes
from emu.spec.scenario import Spec
from emu.spec.switch import Ecn
from topologies.graph import Port, Topology
from topologies.seeds import draw_seed


def plan_marker(spec: Spec, topology: Topology, *, at_join: bool = False) -> AttachMarker | None:
    """The eBPF marker on all ports where the spec allows it; None if there are none."""
    index, marked = port_indexes(topology), marked_ports(spec, topology)
    ports = tuple(_marked_port(spec, port, index[port]) for port in marked)
    return AttachMarker(ports, at_join=at_join) if ports else None


def marked_ports(spec: Spec, topology: Topology) -> list[Port]:
    """The ports where the spec allows eBPF as marker."""
    ecns = ((port, _ecn(spec, port)) for port in port_indexes(topology))
    return [port for port, ecn in ecns if ecn is not None and ecn.may_be_ebpf]


def _marked_port(spec: Spec, port: Port, index: int) -> MarkedPort:
    ecn, seed = _ecn(spec, port), draw_seed(spec.seed, index)
    assert ecn is not None
    return MarkedPort(
        port.interface,
        index,
        tuple(_curve(ecn, queue, seed) for queue in range(PRIORITIES)),
        tuple(map(spec.port(port).classes.queue_of, range(PRIORITIES))),
    )


def plan_red(spec: Spec, topology: Topology, slowdown: float) -> PlaceRed | None:
    """The kernel's RED on all ports where the spec names it; None if there are none."""
    ports = tuple(
        Red.nearest(
            port.interface,
            kmin_bytes=ecn.kmin_bytes,
            kmax_bytes=ecn.kmax_bytes,
            pmax=ecn.pmax,
            rate_bps=round(topology.cable[port].rate_bps / slowdown),
            limit_bytes=spec.switch(port.node).buffer_bytes,
        )
        for port in port_indexes(topology)
        if (ecn := _ecn(spec, port)) is not None and ecn.marker == "red"
    )
    return PlaceRed(ports) if ports else None


def insists_on_ebpf(spec: Spec, topology: Topology) -> bool:
    """Whether the spec names eBPF as the marker of some port, so that no other may replace it."""
    ecns = (_ecn(spec, port) for port in port_indexes(topology))
    return any(ecn is not None and ecn.marker == "ebpf" for ecn in ecns)


def _ecn(spec: Spec, port: Port) -> Ecn | None:
    return spec.port(port).ecn


def _curve(ecn: Ecn, queue: int, seed: int) -> Wred:
    curve = ecn.curve(queue)
    if curve is None:
        return Wred(0, 0, 0, seed, enabled=False)
    return Wred(curve.kmin_bytes, curve.kmax_bytes, curve.pmax_2_32, seed)
