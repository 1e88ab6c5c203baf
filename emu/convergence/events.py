"""The events that are measured, and where they happen.

    link-down     a cable between switches is pulled: both ends lose their carrier
    link-silent   it loses every packet, and both ports stay up
    switch-down   a switch without hosts loses its power
    link-up       a cable that was pulled is plugged in again

Each repetition has another place: a cable of a leaf to a switch above it, or a switch, without
which all hosts still reach each other. The spec's seed draws them, so that all control planes have
the same. Where there are fewer places than repetitions, they come again; each repetition has a seed
of its own in any case, and so other hashes and other probes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from random import Random

from emu.errors import UsageError
from emu.spec.outages import degraded
from emu.spec.route_recording import LinkEvent
from emu.spec.scenario import Spec
from topologies.graph import Cable, Topology


class Event(StrEnum):
    """What happens."""

    LINK_DOWN = "link-down"
    LINK_SILENT = "link-silent"
    SWITCH_DOWN = "switch-down"
    LINK_UP = "link-up"


@dataclass(frozen=True)
class Incident:
    """An event at a place."""

    event: Event
    repetition: int
    """Counted from 1."""
    place: str
    """The cable, by the leaf's port (leaf1:spine1), or the switch."""
    leaf: str
    """The leaf whose hosts probe."""
    cables: tuple[int, ...]
    """The cables that change, by their place in the topology's cables."""
    seed: int

    @property
    def before(self) -> LinkEvent | None:
        """The state of the links before it; None: all are up."""
        return LinkEvent(0, self.cables) if self.event is Event.LINK_UP else None

    @property
    def after(self) -> LinkEvent:
        """The state of the links from it on."""
        if self.event is Event.LINK_UP:
            return LinkEvent(0, ())
        if self.event is Event.LINK_SILENT:
            return LinkEvent(0, (), self.cables)
        return LinkEvent(0, self.cables)


def incidents(spec: Spec, events: Iterable[Event], repetitions: int) -> list[Incident]:
    """All incidents, those of an event together. Raises UsageError: the fabric has no other
    paths."""
    topology = spec.topology.build()
    if len(topology.leaves) < 2:
        raise UsageError(
            "topology: all hosts are at one switch, so no failure between switches costs traffic; "
            "take a fabric with several, such as kind: leaf-spine"
        )
    wanted = list(events)
    cables: list[Cable] = []
    switches: list[str] = []
    if any(event is not Event.SWITCH_DOWN for event in wanted):
        cables = _spare_cables(topology, spec.seed, repetitions)
    if Event.SWITCH_DOWN in wanted:
        switches = _spare_switches(topology, spec.seed, repetitions)
    return [
        _at_switch(topology, spec.seed, repetition, switches)
        if event is Event.SWITCH_DOWN
        else _at_cable(topology, event, spec.seed, repetition, cables)
        for event in wanted
        for repetition in range(1, repetitions + 1)
    ]


def _at_cable(
    topology: Topology, event: Event, seed: int, repetition: int, cables: list[Cable]
) -> Incident:
    cable = cables[(repetition - 1) % len(cables)]
    port = cable.a if cable.a.node in topology.leaves else cable.b
    number = topology.cables.index(cable)
    name = topology.port_name[port]
    return Incident(event, repetition, name, port.node, (number,), seed + repetition - 1)


def _at_switch(topology: Topology, seed: int, repetition: int, switches: list[str]) -> Incident:
    switch = switches[(repetition - 1) % len(switches)]
    near = [leaf for leaf in topology.neighbours[switch] if leaf in topology.leaves]
    leaf = Random(f"{seed} {repetition} leaf").choice(near or list(topology.leaves))
    cables = {topology.cable[port] for port in topology.ports[switch]}
    numbers = (number for number, cable in enumerate(topology.cables) if cable in cables)
    return Incident(
        Event.SWITCH_DOWN, repetition, switch, leaf, tuple(numbers), seed + repetition - 1
    )


def _spare_cables(topology: Topology, seed: int, most: int) -> list[Cable]:
    """Cables of leaves to switches, in random order, up to `most`. Raises UsageError."""
    between = [
        cable
        for cable in topology.cables
        if {cable.a.node, cable.b.node} <= topology.switch.keys()
        and {cable.a.node, cable.b.node} & topology.leaves.keys()
    ]
    Random(f"{seed} cables").shuffle(between)
    spare = (cable for cable in between if _has_others(topology, [cable]))
    found = list(islice(spare, most))
    if not found:
        raise UsageError(_refused("cable of a leaf to a switch", bool(between)))
    return found


def _spare_switches(topology: Topology, seed: int, most: int) -> list[str]:
    """Switches without hosts, in random order, up to `most`. Raises UsageError."""
    others = [name for name in topology.switch if name not in topology.leaves]
    Random(f"{seed} switches").shuffle(others)
    spare = (
        name
        for name in others
        if _has_others(topology, [topology.cable[port] for port in topology.ports[name]])
    )
    found = list(islice(spare, most))
    if not found:
        raise UsageError(_refused("switch without hosts", bool(others)))
    return found


def _refused(what: str, any_is_there: bool) -> str:
    if any_is_there:
        return f"topology: without any {what}, some hosts have no path; take one with more paths"
    return f"topology: no {what} could fail; take a fabric such as kind: leaf-spine"


def _has_others(topology: Topology, lost: Iterable[Cable]) -> bool:
    """Whether each leaf still reaches each other one without these cables."""
    left = degraded(topology, frozenset(lost))
    hosts = [own[0] for own in topology.leaves.values()]
    return all(left.stages(hosts[0], host) for host in hosts[1:])
