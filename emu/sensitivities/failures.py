"""A link that is down, as changes of a spec.

    link down         from the start, and routes avoid it: the fabric has less capacity
    link fails        during the run, after half of the time that the fabric takes without it
    slow routes       the same, and routes change ten times later than with the spec; on InfiniBand
                      it is the subnet manager that is slow

Packets that are sent to a lost link before routes change are lost.
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

_SLOWER = 10


def failure_changes(spec: Spec, places: BusiestPlaces) -> Iterator[Change | LeftOut]:
    """All failures of a pinned spec."""
    slow = "subnet manager slow" if spec.fabric_kind.has_subnet_manager else "slow routes"
    names = ("link down", "link fails", slow)
    if places.cable is None:
        why = "no cable between switches has traffic that could take another path"
        yield from (LeftOut(name, Kind.FAILURE, why) for name in names)
        return
    cable = spec.topology.build().port_name[places.cable]
    yield _down(spec, names[0], cable)
    if places.half_ns is None:
        why = "without it some flows do not finish, so there is no half of the time"
        yield from (LeftOut(name, Kind.FAILURE, why) for name in names[1:])
        return
    at = write_time(places.half_ns * PS_PER_NS // PS_PER_US * PS_PER_US)
    yield _fails(spec, names[1], cable, at, 1)
    yield _fails(spec, names[2], cable, at, _SLOWER)


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


def _cut(spec: Spec, cable: str, at: str) -> dict[str, Any]:
    return with_fault(spec, {"at": at, "link-down": {"cable": cable}})


def _convergence(spec: Spec, factor: int) -> dict[str, Any]:
    times = {
        name: write_time(factor * spec.switch(name).routing.convergence_ps)
        for name in spec.topology.build().switch
    }
    return at_switches(spec, "routing.convergence", times)
