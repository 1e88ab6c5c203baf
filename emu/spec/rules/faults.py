"""What must hold for faults: they are where something is, and do something there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from emu.spec.diagnostic import Diagnostic, KeyPath, did_you_mean, unknown_name
from emu.spec.fault import Fault, OnHost, OnPorts, SwitchDown, fault_names
from emu.spec.misconfiguration import ALREADY, share_a_setting
from emu.spec.rules.switches import HEADERS
from emu.spec.scenario import Spec
from emu.units import write_rate, write_size, write_time
from topologies.graph import Topology


def fault_names_are_unique(spec: Spec) -> Iterator[Diagnostic]:
    first: dict[str, int] = {}
    for index, name in enumerate(fault_names(spec.faults)):
        if first.setdefault(name, index) != index:
            yield Diagnostic(
                ("faults", index),
                f"another fault is called {name!r} too; rename one, or their results could not "
                "be told apart",
                about=(("faults", first[name]),),
            )


def fault_places_exist(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for index, fault in enumerate(spec.faults):
        key, what, known = _named(fault, topology)
        place = fault.what.place
        if place in known:
            continue
        if what == "cable":
            hint = did_you_mean(place, known) or f"; cables are called like {known[0]}"
            text = f"there is no cable {place!r}{hint}"
        else:
            text = unknown_name(what, place, known)
        yield Diagnostic(_key(index, fault, key), text, about=(("topology",),))


def _named(fault: Fault, topology: Topology) -> tuple[str, str, list[str]]:
    """The key that names where it is, what that is, and how these are called."""
    what = fault.what
    if isinstance(what, OnHost):
        return "host", "host", list(topology.host)
    if isinstance(what, SwitchDown) or (isinstance(what, OnPorts) and what.switch is not None):
        return "switch", "switch", list(topology.switch)
    if isinstance(what, OnPorts):
        ports = topology.port_named.items()
        names = [name for name, port in ports if port.node in topology.switch]
        return "port", "port of a switch", names
    return "cable", "cable", list(topology.port_named)


def faults_begin_in_the_run(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        if fault.at_ps >= spec.time_limit_ps:
            yield Diagnostic(
                ("faults", index, "at"),
                f"the run is over by then (time_limit is {write_time(spec.time_limit_ps)}); "
                "begin earlier, or raise time_limit",
                about=(("time_limit",),),
            )


def a_flapping_link_goes_down_more_than_once(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        flap = fault.link_flap
        if flap is not None and fault.for_ps is not None and fault.for_ps <= flap.period_ps:
            yield Diagnostic(
                _key(index, fault, "period"),
                f"the fault is over (for: {write_time(fault.for_ps)}) before the period of "
                f"{write_time(flap.period_ps)} comes round; shorten period, or use link-down",
                about=(("faults", index, "for"),),
            )


def pause_storms_are_on_ethernet(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        if fault.pause_storm is not None and spec.fabric == "ib":
            yield Diagnostic(
                ("faults", index, "pause-storm"),
                "InfiniBand has no pause frames; use slow-receiver, which withholds credit, or "
                "fabric: roce",
                about=(("fabric",),),
                idle_if_inherited=True,
            )


def credit_updates_are_infinibands(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        if fault.flow_control is not None and spec.fabric == "roce":
            yield Diagnostic(
                ("faults", index, "flow-control"),
                "RoCE has no credit updates; use loss, pause-storm or slow-receiver, or fabric: ib",
                about=(("fabric",),),
                idle_if_inherited=True,
            )


def paused_priorities_are_lossless(spec: Spec) -> Iterator[Diagnostic]:
    """A switch obeys pause frames of the priorities that its PFC has."""
    topology = spec.topology.build()
    for index, fault in enumerate(spec.faults):
        storm = fault.pause_storm
        if spec.fabric == "ib" or storm is None or storm.host not in topology.host:
            continue
        leaf = topology.peer[topology.ports[storm.host][0]].node
        pfc = spec.switch(leaf).pfc
        if pfc is None or storm.priority not in pfc.priorities:
            yield Diagnostic(
                _key(index, fault, "priority"),
                f"{leaf} does not obey pause frames of priority {storm.priority}; name it in "
                "switches.pfc.priorities",
                about=(("switches",), ("topology",)),
                idle_if_inherited=True,
            )


def slow_receivers_are_slower_than_their_link(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for index, fault in enumerate(spec.faults):
        slow = fault.slow_receiver
        if slow is None or slow.host not in topology.host:
            continue
        link_bps = topology.cable[topology.ports[slow.host][0]].rate_bps
        if slow.rate_bps >= link_bps:
            yield Diagnostic(
                _key(index, fault, "rate"),
                f"the link of {slow.host} is no faster ({write_rate(link_bps)}), so nothing would "
                "wait; lower rate",
                about=(("topology",),),
            )


def slow_receivers_have_room_for_a_packet(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        slow = fault.slow_receiver
        if slow is not None and slow.buffer_bytes < spec.largest_mtu + HEADERS:
            yield Diagnostic(
                _key(index, fault, "buffer"),
                f"{write_size(slow.buffer_bytes)} cannot hold one packet of mtu "
                f"{spec.largest_mtu} and its headers; raise it, or lower hosts.nic.mtu",
                about=(("hosts",),),
            )


def a_setting_is_changed_once_at_a_time(spec: Spec) -> Iterator[Diagnostic]:
    told = [(index, fault) for index, fault in enumerate(spec.faults) if fault.kind in ALREADY]
    for (_, a), (index, b) in combinations(told, 2):
        if share_a_setting(a.kind, a.what.place, b.kind, b.what.place) and _overlap(a, b):
            yield Diagnostic(
                ("faults", index),
                f"{b.what.place} {ALREADY[b.kind]} at that time; let one end before the other "
                "begins",
                about=(("faults",),),
            )


def _overlap(a: Fault, b: Fault) -> bool:
    first, second = sorted((a, b), key=lambda fault: fault.at_ps)
    return first.end_ps is None or first.end_ps > second.at_ps


def _key(index: int, fault: Fault, key: str) -> KeyPath:
    return ("faults", index, fault.kind, key)


RULES = (
    fault_names_are_unique,
    fault_places_exist,
    faults_begin_in_the_run,
    a_flapping_link_goes_down_more_than_once,
    pause_storms_are_on_ethernet,
    credit_updates_are_infinibands,
    paused_priorities_are_lossless,
    slow_receivers_are_slower_than_their_link,
    slow_receivers_have_room_for_a_packet,
    a_setting_is_changed_once_at_a_time,
)
