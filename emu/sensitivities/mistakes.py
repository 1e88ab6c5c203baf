"""Mistakes that operators make at one place, as changes of a spec.

    RoCE          wrong DSCP map      the busiest switch puts the data on a lossy priority
                  small headroom      it has room for one packet after a pause
                  no ECN              it does not mark
                  CNPs ignored        the busiest sender does not slow down
    InfiniBand    wrong SL            the largest entry of the traffic is on a lane of another
    both          slow receiver       the busiest receiver takes half of its link's rate

A mistake that a fabric cannot have is left out with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

from emu.sensitivities.change import Change, Kind, LeftOut
from emu.sensitivities.pinned import at_ports
from emu.sensitivities.places import BusiestPlaces
from emu.spec.headroom import HEADERS
from emu.spec.scenario import Spec
from emu.spec.subnet import SLS
from emu.units import write_rate, write_size
from traffic.graph import Flow

T = TypeVar("T", bound=Hashable)


def mistake_changes(spec: Spec, places: BusiestPlaces) -> Iterator[Change | LeftOut]:
    """All mistakes on a pinned spec's kind of fabric."""
    if spec.fabric_kind.is_ethernet:
        yield _wrong_map(spec, places)
        yield _small_headroom(spec, places)
        yield _no_ecn(spec, places)
        yield _ignored_cnps(spec, places)
    else:
        yield _wrong_sl(spec, places)
    yield _slow_receiver(spec, places)


def with_fault(spec: Spec, fault: dict[str, Any]) -> dict[str, Any]:
    """The settings that add a fault to those of the spec."""
    return {"faults": [*(own.to_mapping() for own in spec.faults), fault]}


def _mistake(name: str, what: str, settings: dict[str, Any]) -> Change:
    return Change(name, Kind.MISTAKE, what, settings)


def _left_out(name: str, reason: str) -> LeftOut:
    return LeftOut(name, Kind.MISTAKE, reason)


def _wrong_map(spec: Spec, places: BusiestPlaces) -> Change | LeftOut:
    own, switch = spec.port(places.port), places.switch
    lossless = set(own.pfc.priorities) if own.pfc else set()
    right, dscp = _of_most_bytes(spec, lambda flow: _priority_and_dscp(spec, flow))
    wrong = next((n for n in range(8) if n not in {right, *lossless}), None)
    if wrong is None:
        return _left_out("wrong DSCP map", f"all other priorities of {switch} are lossless")
    trust = own.classes.trust
    code = dscp if trust == "dscp" else right
    what = f"{switch}: {trust.upper()} {code} on priority {wrong} instead of {right}"
    fault = {"wrong-map": {"switch": switch, trust: {str(code): wrong}}}
    return _mistake(f"wrong {trust.upper()} map", what, with_fault(spec, fault))


def _priority_and_dscp(spec: Spec, flow: Flow) -> tuple[int, int]:
    host = flow.bytes_from
    return spec.priority(host, flow.priority), spec.dscp(host, flow.priority)


def _of_most_bytes(spec: Spec, of: Callable[[Flow], T]) -> T:
    """What most bytes of the workload have in common."""
    workload = spec.workload()
    counts: Counter[T] = Counter()
    for flow in spec.fabric_flows(workload):
        counts[of(flow)] += workload.bytes_of(flow)
    return counts.most_common(1)[0][0]


def _small_headroom(spec: Spec, places: BusiestPlaces) -> Change | LeftOut:
    if spec.port(places.port).pfc is None:
        return _left_out("small headroom", f"{places.switch} has no PFC, so it has no headroom")
    room = write_size(spec.largest_mtu + HEADERS)
    fault = {"small-headroom": {"switch": places.switch, "headroom": room}}
    what = f"{places.switch}: {room}, room for one packet"
    return _mistake("small headroom", what, with_fault(spec, fault))


def _no_ecn(spec: Spec, places: BusiestPlaces) -> Change | LeftOut:
    ports = spec.topology.build().ports[places.switch]
    marking = {port: "off" for port in ports if spec.port(port).ecn is not None}
    if not marking:
        return _left_out("a switch without ECN", f"{places.switch} does not mark anyhow")
    what = f"{places.switch} marks nothing"
    return _mistake("a switch without ECN", what, at_ports(spec, "ecn", marking))


def _ignored_cnps(spec: Spec, places: BusiestPlaces) -> Change | LeftOut:
    nic = spec.host(places.sender).nic
    if nic.control(nic.cc).becn.by != "cnp":
        why = f"{places.sender} does not react to CNPs anyhow (cc: {nic.cc})"
        return _left_out("CNPs ignored", why)
    fault = {"ignored-cnps": {"host": places.sender}}
    return _mistake("CNPs ignored", f"by {places.sender}", with_fault(spec, fault))


def _wrong_sl(spec: Spec, places: BusiestPlaces) -> Change | LeftOut:
    lanes = spec.subnet.vl_of_sl(spec.switch(places.switch).credits.vls)
    entry, right = _of_most_bytes(spec, lambda flow: (flow.traffic, _sl(spec, flow)))
    used = {_sl(spec, flow) for flow in spec.fabric_flows()}
    others = [sl for sl in (*sorted(used), *range(SLS)) if lanes[sl] != lanes[right]]
    served = [sl for sl in others if lanes[sl] in spec.subnet.vl_arbitration.served]
    if not served:
        why = f"all service levels are on lane {lanes[right]} (switches.credits.vls)"
        return _left_out("wrong SL", why)
    what = f"{entry}: SL {served[0]} instead of {right}, lane {lanes[served[0]]}"
    return _mistake("wrong SL", what, {f"traffic.{entry}.priority": served[0]})


def _sl(spec: Spec, flow: Flow) -> int:
    return spec.host(flow.bytes_from).nic.sl if flow.priority is None else flow.priority


def _slow_receiver(spec: Spec, places: BusiestPlaces) -> Change:
    topology, host = spec.topology.build(), places.receiver
    rate = write_rate(topology.cable[topology.ports[host][0]].rate_bps // 2)
    fault = {"slow-receiver": {"host": host, "rate": rate}}
    return _mistake("slow receiver", f"{host} takes {rate}", with_fault(spec, fault))
