"""What goes on in a lab that is up, in sentences: the report's diagnosis of the latest moments, and
what the lab itself knows.

    two looks ─▶ recording of the time between ─▶ the report's own detectors ─▶ sentences
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.measure.between import recording_between, recording_so_far
from emu.measure.counters import PRIORITIES
from emu.measure.look import LinkChange, Look, cause_of
from emu.report import signatures
from emu.report.diagnosis import Pathology, pathologies
from emu.report.facts import RunFacts
from emu.spec.scenario import Spec
from emu.units import format_time_ns
from topologies.graph import Topology

_NAMED = 3
"""More flows than these are counted."""


_SAID_OTHERWISE = (signatures.gave_up, signatures.guarded_storm)
"""The lab itself knows of these, and says them with what is so at this moment."""
_OF_THE_WHOLE = (
    signatures.deadlock,
    signatures.livelock,
    signatures.wrong_map,
    signatures.unseen_priority,
    signatures.late_marks,
    signatures.unheeded_marks,
)
"""Known by what has not happened at all: never marked, never received, never delivered."""


def sentences(spec: Spec, before: Look, after: Look) -> list[str]:
    """What is wrong at this moment, the gravest first; nothing where nothing is. `spec`: the lab's
    own, as it came up. Of traffic that is over it says who gave up."""
    traffic = _of_traffic(spec, before, after) if after.hosts else ()
    return [*traffic, *_watchdogs(spec.topology.build(), after), *_links(after)]


def needs_two_looks(look: Look) -> bool:
    """Whether there is more to say when some time has passed."""
    return look.traffic.state == "running"


def _of_traffic(spec: Spec, before: Look, after: Look) -> Iterator[str]:
    now = spec.model_copy(update={"faults": tuple(f.spec for f in after.faults if f.spec)})
    topology = now.topology.build()
    whole = RunFacts("so far", recording_so_far(now, before, after), now, topology)
    yield from _gave_up(whole)
    window_ns = after.time_ns - before.time_ns
    if needs_two_looks(after) and window_ns > 0:
        latest = RunFacts("now", recording_between(now, before, after), now, topology)
        yield from _diagnosed(latest, whole, window_ns)


def _gave_up(run: RunFacts) -> Iterator[str]:
    failed = [pair.flow for pair in run.recording.failed_queue_pairs]
    if not failed:
        return
    named = ", ".join(failed[:_NAMED]) + (", ..." if len(failed) > _NAMED else "")
    statuses = ", ".join(sorted({pair.status for pair in run.recording.failed_queue_pairs}))
    yield (
        f"Gave up: the queue pairs of {len(failed)} of {len(run.flows)} flows failed ({named}) "
        f"with {statuses}; they send nothing more until traffic is started again"
    )


def _diagnosed(latest: RunFacts, whole: RunFacts, window_ns: int) -> Iterator[str]:
    if latest.uses_credits:
        yield from _credit_deadlock(whole)
        return

    def facts_for(pathology: Pathology) -> RunFacts:
        return whole if pathology.signature in _OF_THE_WHOLE else latest

    for pathology, found in pathologies(facts_for):
        if pathology.signature in _SAID_OTHERWISE:
            continue
        is_so_far = facts_for(pathology) is whole
        when = "since traffic began" if is_so_far else f"the last {format_time_ns(window_ns)}"
        name = pathology.name[0].upper() + pathology.name[1:]
        yield f"{name} ({when}): {found.evidence}"


def _credit_deadlock(run: RunFacts) -> Iterator[str]:
    stuck = run.recording.deadlocks
    if stuck and run.unfinished:
        found, ports = format_time_ns(stuck[0].found_ns), ", ".join(stuck[0].ports)
        yield (
            f"Credit deadlock: since {found} nothing moves at {ports}, each of which waits for "
            "credit from the next"
        )


def _watchdogs(topology: Topology, look: Look) -> Iterator[str]:
    for name, own in look.ports.items():
        stormed = [
            priority
            for priority in PRIORITIES
            if own["watchdog_detected"][priority] > own["watchdog_restored"][priority]
        ]
        if stormed:
            peer = topology.peer[topology.port_named[name]].node
            numbers = ", ".join(map(str, stormed))
            dropped = sum(sum(own[f"watchdog_{way}_dropped"]) for way in ("rx", "tx"))
            yield (
                f"PFC watchdog: {name} is paused by {peer} without a break, so the watchdog has "
                f"taken it out of PFC for priority {numbers}; it has dropped {dropped:,} packets"
            )


def _links(look: Look) -> Iterator[str]:
    if not look.links or not look.links[-1].down:
        return
    last = look.links[-1]
    for port in last.down:
        yield f"Link down: {port}, by {cause_of(look, port)}; {_routes(look, last)}"


def _routes(look: Look, change: LinkChange) -> str:
    if change.in_force_ns is None or change.in_force_ns > look.time_ns:
        return "packets that are routed over it are lost until routes have converged"
    return f"routes have avoided it since {format_time_ns(change.in_force_ns)}"
