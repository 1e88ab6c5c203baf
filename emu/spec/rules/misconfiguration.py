"""What must hold for faults of tuning: there is such a setting, and they change it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from emu.spec.classes import PRIORITIES
from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault import Fault, IgnoredCnps, OnPorts, SmallHeadroom, WrongEcn, WrongMap
from emu.spec.headroom import headroom_of
from emu.spec.misconfiguration import (
    OF_ROCE,
    curve_with,
    headroom_with,
    hears_cnps,
    ports_changed,
    ports_of,
)
from emu.spec.rules.switches import HEADERS
from emu.spec.scenario import Spec
from emu.spec.switch import Curve
from emu.units import write_size
from topologies.graph import Port

_What = TypeVar("_What", bound=OnPorts)

_SWITCHES: KeyPath = ("switches",)
_INSTEAD = {
    "wrong-map": "InfiniBand's packets have no DSCP or PCP",
    "small-headroom": "InfiniBand's credits need no headroom",
    "wrong-ecn": "InfiniBand's switches mark by fecn, and have no kmin or kmax",
    "ignored-cnps": "this is for RoCE's CNPs",
}


def tuning_is_of_roce(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        if isinstance(fault.what, OF_ROCE) and spec.fabric == "ib":
            yield Diagnostic(
                ("faults", index, fault.kind),
                f"{_INSTEAD[fault.kind]}; leave it out, or use fabric: roce",
                about=(("fabric",),),
                idle_if_inherited=True,
            )


def _on_roce(spec: Spec) -> Iterator[tuple[int, Fault]]:
    """The faults, where rules about what InfiniBand has not need not be told."""
    if spec.fabric == "roce":
        yield from enumerate(spec.faults)


def _of_kind(spec: Spec, kind: type[_What]) -> Iterator[tuple[int, _What, list[Port]]]:
    """Its number, itself, and the ports where there is what it changes."""
    topology = spec.topology.build()
    for index, fault in _on_roce(spec):
        if isinstance(fault.what, kind):
            ports = ports_changed(fault.what, spec, topology)
            if ports:
                yield index, fault.what, ports


def there_is_what_is_changed(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for index, fault in _on_roce(spec):
        what = fault.what
        if not isinstance(what, OnPorts) or not ports_of(what, topology):
            continue
        if not ports_changed(what, spec, topology):
            yield Diagnostic(
                ("faults", index, fault.kind),
                f"{what.place} {_missing(what)}",
                about=(_SWITCHES, ("topology",)),
                idle_if_inherited=True,
            )


def _missing(what: OnPorts) -> str:
    if isinstance(what, WrongMap):
        key, other = ("DSCP", "pcp") if what.dscp is not None else ("PCP", "dscp")
        return f"does not trust {key}, so that nobody asks for this map; use {other}"
    if isinstance(what, SmallHeadroom):
        return "has no PFC, so that it keeps no headroom; give it switches.pfc"
    return "does not mark, so that it has no thresholds; give it switches.ecn"


def wrong_maps_are_wrong(spec: Spec) -> Iterator[Diagnostic]:
    for index, what, ports in _of_kind(spec, WrongMap):
        key, wrong = what.wrong
        for code_point, priority in wrong.items():
            if all(_priority(spec, port, key, code_point) == priority for port in ports):
                yield Diagnostic(
                    ("faults", index, "wrong-map", key, str(code_point)),
                    f"{what.place} has {key.upper()} {code_point} on priority {priority} anyhow; "
                    "name another priority, or leave it out",
                    about=(_SWITCHES, ("topology",)),
                    idle_if_inherited=True,
                )


def _priority(spec: Spec, port: Port, key: str, code_point: int) -> int:
    classes = spec.port(port).classes
    of = classes.priority_of_dscp if key == "dscp" else classes.priority_of_pcp
    return of(code_point)


def small_headroom_is_small(spec: Spec) -> Iterator[Diagnostic]:
    for index, what, ports in _of_kind(spec, SmallHeadroom):
        least = min(ports, key=lambda port: headroom_with(what, spec, port))
        size, right = headroom_with(what, spec, least), headroom_of(spec, least)
        given = "fraction" if what.headroom_bytes is None else "headroom"
        key = ("faults", index, "small-headroom", given)
        name = spec.topology.build().port_name[least]
        if all(headroom_with(what, spec, port) == headroom_of(spec, port) for port in ports):
            yield Diagnostic(
                key,
                f"{name} keeps no more than {write_size(right)} anyhow; lower it",
                about=(_SWITCHES, ("topology",), ("hosts",)),
                idle_if_inherited=True,
            )
        elif size < spec.largest_mtu + HEADERS:
            yield Diagnostic(
                key,
                f"{write_size(size)} at {name} cannot hold one packet of mtu {spec.largest_mtu} "
                "and its headers: a switch pauses when one goes into its headroom, and never "
                "would; raise it",
                about=(_SWITCHES, ("topology",), ("hosts",)),
            )


def wrong_curves_are_curves(spec: Spec) -> Iterator[Diagnostic]:
    """And others than there are."""
    for index, what, ports in _of_kind(spec, WrongEcn):
        path = ("faults", index, "wrong-ecn")
        curves = [(port, curve) for port in ports for curve in _curves(spec, port)]
        if all(curve_with(what, curve) == curve for _, curve in curves):
            yield Diagnostic(
                path,
                f"{what.place} marks by these thresholds anyhow; change one, or leave it out",
                about=(_SWITCHES, ("topology",)),
                idle_if_inherited=True,
            )
        for port, curve in curves:
            finding = _no_curve(spec, port, curve_with(what, curve))
            if finding is not None:
                key = "kmax" if what.kmin_bytes is None else "kmin"
                yield Diagnostic((*path, key), finding, about=(_SWITCHES, ("topology",)))
                break


def _curves(spec: Spec, port: Port) -> Iterator[Curve]:
    ecn = spec.port(port).ecn
    curves = (ecn.curve(queue) for queue in range(PRIORITIES)) if ecn else ()
    yield from (curve for curve in curves if curve is not None)


def _no_curve(spec: Spec, port: Port, curve: Curve) -> str | None:
    """What is wrong with a curve; None: nothing."""
    name = spec.topology.build().port_name[port]
    kmin, kmax = write_size(curve.kmin_bytes), write_size(curve.kmax_bytes)
    buffer = spec.switch(port.node).buffer_bytes
    if curve.kmin_bytes > curve.kmax_bytes:
        return (
            f"at {name} kmin would be {kmin}, above kmax ({kmax}): marking would end before it "
            "began; lower kmin or raise kmax"
        )
    if curve.kmin_bytes >= buffer:
        return (
            f"no queue of {name} gets as deep as {kmin} in a buffer of {write_size(buffer)}; "
            "lower kmin"
        )
    return None


def red_keeps_its_curve(spec: Spec) -> Iterator[Diagnostic]:
    """A qdisc is not changed at a moment of emulated time."""
    for index, _, ports in _of_kind(spec, WrongEcn):
        by_red = [port for port in ports if (ecn := spec.port(port).ecn) and ecn.marker == "red"]
        if by_red:
            yield Diagnostic(
                ("faults", index, "wrong-ecn"),
                f"at {spec.topology.build().port_name[by_red[0]]} the kernel's RED marks (marker: "
                "red), which keeps its thresholds for as long as the fabric is there; use "
                "switches.ecn.marker: ebpf or shim",
                about=(_SWITCHES, ("topology",)),
            )


def ignored_cnps_would_be_heard(spec: Spec) -> Iterator[Diagnostic]:
    known = spec.topology.build().host
    for index, fault in _on_roce(spec):
        what = fault.what
        if isinstance(what, IgnoredCnps) and what.host in known and not hears_cnps(spec, what.host):
            yield Diagnostic(
                ("faults", index, "ignored-cnps", "host"),
                f"{what.host} (cc: {spec.host(what.host).nic.cc}) does not listen to CNPs anyhow; "
                "use cc: dcqcn, dcqcn-nvidia or cct in hosts.nic",
                about=(("hosts",), ("topology",)),
                idle_if_inherited=True,
            )


RULES = (
    tuning_is_of_roce,
    there_is_what_is_changed,
    wrong_maps_are_wrong,
    small_headroom_is_small,
    wrong_curves_are_curves,
    red_keeps_its_curve,
    ignored_cnps_would_be_heard,
)
