"""What fails in a fabric, as changes of a spec.

    link down               from the start, and routes avoid it: the fabric has less capacity
    link fails              during the run, after half of the time that the fabric takes without it
    slow routes             the same, and routes change ten times later than with the spec; on
                            InfiniBand it is the subnet manager that is slow
    no subnet manager       the same, and routes never change, as nobody is there to change them
    switch fails            a switch loses its power at that time, and routes avoid it

Packets that are sent to a lost link before routes change are lost. Switches of Ethernet change
their routes themselves, so there is nothing like a lost manager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from emu.sensitivities.change import Change, Kind, LeftOut
from emu.sensitivities.mistakes import with_fault
from emu.sensitivities.pinned import at_switches
from emu.sensitivities.places import BusiestPlaces
from emu.spec.outages import slowest_convergence_ps
from emu.spec.scenario import Spec
from emu.units import PS_PER_NS, PS_PER_US, write_time

_CONVERGENCE = "routing.convergence"
_SLOWER = 10
_LINKS = "no cable between switches has traffic that could take another path"
_SWITCHES = "without any switch that has traffic, some flow has no path"
_NO_HALF = "without it some flows do not finish, so there is no half of the time"


def failure_changes(spec: Spec, places: BusiestPlaces) -> Iterator[Change | LeftOut]:
    """All failures of a pinned spec."""
    yield from _lost_links(spec, places)
    name = "switch fails"
    if places.spare is None:
        yield LeftOut(name, Kind.FAILURE, _SWITCHES)
    elif places.half_ns is None:
        yield LeftOut(name, Kind.FAILURE, _NO_HALF)
    else:
        yield _switch_fails(spec, name, places.spare, _time(places.half_ns))


def _lost_links(spec: Spec, places: BusiestPlaces) -> Iterator[Change | LeftOut]:
    has_manager = spec.fabric_kind.has_subnet_manager
    slow = "subnet manager slow" if has_manager else "slow routes"
    names = ["link down", "link fails", slow, *(["no subnet manager"] if has_manager else [])]
    if places.cable is None:
        yield from (LeftOut(name, Kind.FAILURE, _LINKS) for name in names)
        return
    cable = spec.topology.build().port_name[places.cable]
    yield _down(spec, names[0], cable)
    if places.half_ns is None:
        yield from (LeftOut(name, Kind.FAILURE, _NO_HALF) for name in names[1:])
        return
    at = _time(places.half_ns)
    yield _fails(spec, names[1], cable, at, 1)
    yield _fails(spec, slow, cable, at, _SLOWER)
    if has_manager:
        never = dict.fromkeys(spec.topology.build().switch, write_time(spec.time_limit_ps))
        settings = _cut(spec, cable, at) | at_switches(spec, _CONVERGENCE, never)
        what = f"{cable} at {at}, and routes do not change"
        yield Change(names[-1], Kind.FAILURE, what, settings)


def _time(ns: int) -> str:
    return write_time(ns * PS_PER_NS // PS_PER_US * PS_PER_US)


def _down(spec: Spec, name: str, cable: str) -> Change:
    settings = _cut(spec, cable, "0ns") | _convergence(spec, 0)
    return Change(name, Kind.FAILURE, f"{cable} from the start", settings)


def _fails(spec: Spec, name: str, cable: str, at: str, slower: int) -> Change:
    settings = _cut(spec, cable, at)
    if slower != 1:
        settings |= _convergence(spec, slower)
    later = write_time(slower * slowest_convergence_ps(spec))
    what = f"{cable} at {at}, routes change {later} later"
    return Change(name, Kind.FAILURE, what, settings)


def _switch_fails(spec: Spec, name: str, switch: str, at: str) -> Change:
    fault = {"at": at, "switch-down": {"switch": switch}}
    later = write_time(slowest_convergence_ps(spec))
    what = f"{switch} at {at}, routes change {later} later"
    return Change(name, Kind.FAILURE, what, with_fault(spec, fault))


def _cut(spec: Spec, cable: str, at: str) -> dict[str, Any]:
    return with_fault(spec, {"at": at, "link-down": {"cable": cable}})


def _convergence(spec: Spec, factor: int) -> dict[str, Any]:
    times = {
        name: write_time(factor * spec.switch(name).routing.convergence_ps)
        for name in spec.topology.build().switch
    }
    return at_switches(spec, _CONVERGENCE, times)
