"""The changes of switches' routes, which are known before a run begins.

Without a routing protocol, a switch reacts to a lost link its `convergence` after the loss. Until
then it forwards packets to the lost link, where they are dropped. Likewise it uses a link that came
back only after its `convergence`. With one, its routes are those that the protocol has learned
(emu.spec.learned_routes).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from emu.spec.learned_routes import learned_reroutings
from emu.spec.outages import Rerouting, degraded, outages
from emu.spec.route_recording import read_recording
from emu.spec.routing import OPENFLOW_KINDS
from emu.spec.scenario import Spec

MAX_HINTED_PORTS = 255
"""The largest port number that fits into the one byte of a transit tag (switch.h)."""


def reroutings(spec: Spec) -> list[Rerouting]:
    """All changes of switches' routes, in order of time. Raises UsageError: the recorded routes
    cannot be read."""
    if spec.recorded_routes is None:
        found = _static_reroutings(spec)
    else:
        found = learned_reroutings(spec, read_recording(Path(spec.recorded_routes)))
    return sorted(found, key=lambda change: change.at_ps)


def _static_reroutings(spec: Spec) -> Iterator[Rerouting]:
    """The changes to the shortest paths that are left."""
    before = topology = spec.topology.build()
    for at_ps, down in outages(spec):
        after = degraded(topology, down)
        for switch, changes in before.changed_hops(after):
            when = at_ps + spec.switch(switch).routing.convergence_ps
            yield Rerouting(when, switch, changes, at_ps)
        before = after


def is_hinted(spec: Spec, switch: str, changes: Sequence[Rerouting]) -> bool:
    """Whether the core chooses the next hop although Open vSwitch forwards: Open vSwitch cannot
    route this way, or not at the exact time. `changes` are those of the switch."""
    return bool(changes) or spec.switch(switch).routing.kind not in OPENFLOW_KINDS
