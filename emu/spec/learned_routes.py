"""The routes that a routing protocol gave the switches, from a recording, as changes of routes.

With local repair, a switch takes a port without a link out of its routes by itself, `convergence`
after the loss; without, it waits for the routing protocol.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from emu.errors import UsageError
from emu.spec.learned_table import LearnedTable
from emu.spec.outages import PS_PER_NS, Rerouting, link_events
from emu.spec.route_recording import Fib, RouteRecording
from emu.spec.scenario import Spec
from emu.units import write_time
from topologies.graph import Cable, Topology


class _Step(NamedTuple):
    """A change of a switch's routes, as the recording has it, or of its own links."""

    at_ps: int
    cause_ps: int
    fib: Fib
    down: frozenset[Cable] | None = None
    """The links that are lost then; None: as before."""


def learned_reroutings(spec: Spec, recording: RouteRecording) -> Iterator[Rerouting]:
    """The changes of each switch's routes, those at the start too, where the routing protocol's
    differ from the shortest paths. Raises UsageError: the recording is of another run."""
    topology = spec.topology.build()
    _refuse_others(spec, topology, recording)
    for switch in topology.switch:
        table = LearnedTable(topology, switch)
        table.learn(recording.first.get(switch, {}))
        for step in _steps(spec, recording, switch):
            if step.down is not None:
                table.lose(step.down)
            table.learn(step.fib)
            if changes := table.take_changes():
                yield Rerouting(step.at_ps, switch, changes, step.cause_ps)


def _refuse_others(spec: Spec, topology: Topology, recording: RouteRecording) -> None:
    fibs = [(switch, fib) for switch, fib in recording.first.items()]
    fibs += [(change.switch, change.fib) for change in recording.changes]
    ports = {name: {port.number for port in own} for name, own in topology.ports.items()}
    used = {switch: set[int]() for switch, _ in fibs}
    for switch, fib in fibs:
        used[switch].update(*fib.values())
    differs = [name for name, numbers in used.items() if not numbers <= ports.get(name, set())]
    what = ""
    if recording.first.keys() != topology.switch.keys() or differs:
        what = "another fabric"
    elif recording.events != link_events(spec):
        what = "links that fail at other times"
    elif recording.holds_until_ns is not None and (
        spec.time_limit_ps > recording.holds_until_ns * PS_PER_NS
    ):
        what = f"a run of {write_time(recording.holds_until_ns * PS_PER_NS)}"
    if what:
        raise UsageError(
            f"recorded_routes: {spec.recorded_routes} was recorded for {what}; leave it out, and "
            "emu records the routes of this run"
        )


def _steps(spec: Spec, recording: RouteRecording, switch: str) -> list[_Step]:
    """In order of time."""
    routing = spec.switch(switch).routing
    cables = spec.topology.build().cables
    event_ns = [event.at_ns for event in recording.events]
    steps = [_Step(0, 0, {})]
    for event in recording.events:
        down = frozenset(cables[number] for number in event.down)
        at_ps = event.at_ns * PS_PER_NS
        steps.append(_Step(at_ps + routing.convergence_ps, at_ps, {}, down))
    for change in recording.changes:
        if change.switch != switch or (change.by_kernel and not routing.bgp.local_repair):
            continue
        before = bisect_right(event_ns, change.at_ns)
        cause_ps = event_ns[before - 1] * PS_PER_NS if before else 0
        at_ps = cause_ps + routing.convergence_ps
        if not change.by_kernel:
            at_ps = max(change.at_ns * PS_PER_NS, cause_ps)
        steps.append(_Step(at_ps, cause_ps, change.fib))
    return sorted(steps, key=lambda step: step.at_ps)
