"""`--clock auto`: the clock that a run takes when nobody names one.

    kernel TCP, or the kernel's RED             real
    payload: elided                             virtual
    a run that would take long in a lab         virtual
    a machine where no lab can be built         virtual
    everything else                             exact

The exact and the virtual clock give the same results, so the choice changes how a run goes and how
long it takes, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from emu.clocks import EXACT, VIRTUAL, Clock
from emu.errors import HostError
from emu.measure.run_estimate import estimate_of
from emu.spec.scenario import Spec

MOST_HOSTS = 128
"""Of a lab that is built unasked: with more, building it takes longer than most runs."""
_MOST_SECONDS = 60
_SECONDS_A_HOP = 10e-6
"""Of a packet on a link in a lab on the exact clock, with its share of windows: 3 to 20 us with 2
to 16 hosts, on two cores of a server."""
_DATAPATH = {"ovs": ("Open vSwitch",), "shim": ()}
"""Plane -> the probe of what forwards there."""


@dataclass(frozen=True)
class ClockChoice:
    """A clock, and why it is not the exact one."""

    clock: Clock
    why: str = ""

    def __str__(self) -> str:
        return f"{self.clock.name} clock: {self.why or self.clock.how}"


def auto_clock(specs: Sequence[Spec]) -> ClockChoice:
    """The clock for these specs, which run one after the other."""
    from emu.runtime.exact import obstacle

    if found := next(filter(None, map(obstacle, specs)), None):
        return ClockChoice(found.clock, found.why)
    probes = {probe for spec in specs for probe in _DATAPATH[spec.plane_in_use]}
    too_long = (why for why in map(_why_too_long, specs) if why)
    if why := next(too_long, "") or why_no_labs_here(*probes):
        return ClockChoice(VIRTUAL, why)
    return ClockChoice(EXACT)


def _why_too_long(spec: Spec) -> str:
    """Why a lab of this spec takes long; empty if it does not."""
    hosts = len(spec.topology.build().hosts)
    if hosts > MOST_HOSTS:
        return f"a lab of {hosts:,} hosts takes long to build; --clock exact builds it"
    seconds = estimate_of(spec).link_hops * _SECONDS_A_HOP
    if seconds > _MOST_SECONDS:
        return (
            f"a lab would take about {seconds / 60:.0f} min for these packets; --clock exact runs "
            "one"
        )
    return ""


@cache
def why_no_labs_here(*probes: str) -> str:
    """What this machine lacks for a lab on the exact clock, with what these probes of `emu check`
    look for; empty if it lacks nothing."""
    from emu.lab.probe import require

    try:
        require(*EXACT.needs, *probes)
    except HostError as error:
        return f"no lab can be built here: {error.what}; `emu check` shows how to get it"
    return ""
