"""What must hold for an InfiniBand subnet: lanes, service levels, and who is given what."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.finding import Finding, KeyPath
from emu.spec.rules.given import for_switch
from emu.spec.rules.switches import HEADERS
from emu.spec.scenario import Spec
from emu.spec.subnet import MANAGEMENT_VL
from emu.units import write_size

_SL2VL: KeyPath = ("subnet", "sl2vl")
_ARBITRATION: KeyPath = ("subnet", "vl_arbitration")


def service_levels(spec: Spec) -> dict[int, KeyPath]:
    """Service levels that packets of this spec have, and the key that says so."""
    found: dict[int, KeyPath] = {}
    for index, entry in enumerate(spec.traffic):
        if entry.priority is not None:
            found.setdefault(entry.priority, ("traffic", index, "priority"))
            continue
        for name in dict.fromkeys(host for pair in entry.pairs(spec.seed) for host in pair):
            found.setdefault(spec.host(name).nic.sl, ("hosts",))
    return found


def service_levels_have_a_lane(spec: Spec) -> Iterator[Finding]:
    if spec.fabric != "ib":
        return
    for sl, path in service_levels(spec).items():
        if spec.subnet.sl2vl[sl] == MANAGEMENT_VL:
            yield Finding(
                _SL2VL,
                f"maps SL {sl} to VL15, which drops its packets, and the traffic uses SL {sl}; "
                "give it a lane from 0 to 14",
                about=(path,),
            )


def lanes_in_use_are_served(spec: Spec) -> Iterator[Finding]:
    if spec.fabric != "ib":
        return
    tables = spec.subnet.vl_arbitration
    served = {vl for lanes in (tables.high, tables.low) for vl, weight in lanes.items() if weight}
    links = {spec.switch(name).credits.vls for name in spec.topology.build().switch} - {1}
    used = {spec.subnet.vl_of_sl(vls)[sl] for vls in links for sl in service_levels(spec)}
    for vl in sorted(used - served - {MANAGEMENT_VL}):
        yield Finding(
            _ARBITRATION,
            f"gives VL {vl} no weight in either table, so its packets would never leave; "
            "add it to high or low",
            about=(_SL2VL, ("traffic",), ("hosts",)),
        )


def lanes_hold_a_packet(spec: Spec) -> Iterator[Finding]:
    needed = spec.largest_mtu + HEADERS
    for name in spec.topology.build().switch if spec.fabric == "ib" else ():
        for vl, size in spec.switch(name).credits.lanes.items():
            if size < needed:
                yield Finding(
                    for_switch(spec, name, "credits", "lanes", str(vl)),
                    f"{write_size(size)} cannot hold one packet of mtu {spec.largest_mtu} and its "
                    "headers; raise it, or lower hosts.nic.mtu",
                    about=(("hosts",),),
                )


RULES = (service_levels_have_a_lane, lanes_in_use_are_served, lanes_hold_a_packet)
