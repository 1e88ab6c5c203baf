"""Faults of tuning: which settings they change, and to what.

    kind             ports             instead of
    wrong-map        in                classes.dscp, classes.pcp
    small-headroom   in                pfc.headroom
    wrong-ecn        out               ecn's kmin, kmax and pmax, of every queue
    ignored-cnps     (a NIC)           nic.cc

Two of one kind cannot be at a place at once, as each puts back what it found; the same
holds for slow receivers.
"""

from __future__ import annotations

from typing import Any

from emu.spec.classes import Classes
from emu.spec.fault import IgnoredCnps, OnPorts, SmallHeadroom, WrongEcn, WrongMap
from emu.spec.headroom import headroom_of
from emu.spec.scenario import Spec
from emu.spec.switch import Curve, PortSpec
from topologies.graph import Port, Topology

ALREADY = {
    "slow-receiver": "is a slow receiver already",
    "wrong-map": "has a wrong map already",
    "small-headroom": "has too small a headroom already",
    "wrong-ecn": "has wrong ECN thresholds already",
    "ignored-cnps": "ignores CNPs already",
}
"""Kinds of which a place has one at a time, in words after its name."""

OF_ROCE = (WrongMap, SmallHeadroom, WrongEcn, IgnoredCnps)


def share_a_setting(kind: str, place: str, other_kind: str, other_place: str) -> bool:
    """Whether two faults would change the same setting. A switch is the place of its ports."""
    if kind != other_kind or kind not in ALREADY:
        return False
    outer, inner = sorted((place, other_place), key=len)
    return inner == outer or inner.startswith(f"{outer}:")


def ports_of(what: OnPorts, topology: Topology) -> list[Port]:
    """Where a fault is; nowhere where there is no such switch or port."""
    if what.switch is not None:
        return topology.ports[what.switch] if what.switch in topology.switch else []
    port = topology.port_named.get(what.place)
    return [port] if port is not None and port.node in topology.switch else []


def ports_changed(what: OnPorts, spec: Spec, topology: Topology) -> list[Port]:
    """Those where there is what it changes: a map that is asked for, PFC, or marks."""
    return [port for port in ports_of(what, topology) if _has(spec.port(port), what)]


def _has(own: PortSpec, what: OnPorts) -> bool:
    if isinstance(what, WrongMap):
        return own.classes.trust == what.wrong[0]
    return (own.pfc if isinstance(what, SmallHeadroom) else own.ecn) is not None


def hears_cnps(spec: Spec, host: str) -> bool:
    nic = spec.host(host).nic
    return nic.control(nic.cc).becn.by == "cnp"


def map_with(what: WrongMap, right: Classes) -> Classes:
    """Meanwhile."""
    key, wrong = what.wrong
    return right.model_copy(update={key: {**getattr(right, key), **wrong}})


def headroom_with(what: SmallHeadroom, spec: Spec, port: Port) -> int:
    """Bytes meanwhile, per lossless priority; never more than there are otherwise."""
    right = headroom_of(spec, port)
    wrong = what.headroom_bytes
    return min(right, int(right * (what.fraction or 0)) if wrong is None else wrong)


def curve_with(what: WrongEcn, right: Curve) -> Curve:
    """Meanwhile, of one queue."""
    keys = {"kmin_bytes": "kmin_given", "kmax_bytes": "kmax_given", "pmax": "pmax"}
    given: dict[str, Any] = {
        field: value for key, field in keys.items() if (value := getattr(what, key)) is not None
    }
    return right.model_copy(update=given)
