"""What is wrong in a running lab, in sentences: diagnoses of the latest interval, and the states of
PFC watchdogs and links.

    two snapshots ─▶ recording of the time between ─▶ the report's own detectors ─▶ sentences
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from emu.measure.between import recording_between, recording_so_far
from emu.measure.counters import PRIORITIES
from emu.measure.lab_snapshot import LabSnapshot, LinkChange, cause_of
from emu.measure.raw_counters import RawCounters
from emu.report import detectors
from emu.report.detectors import Finding
from emu.report.diagnosis import Pathology, pathologies
from emu.report.held_rates import held_by_control
from emu.report.run_view import RunFacts
from emu.spec.scenario import Spec
from emu.units import format_time_ns

_SO_FAR = (
    detectors.gave_up,
    detectors.deadlock,
    detectors.credit_deadlock,
    detectors.livelock,
    detectors.wrong_map,
    detectors.unseen_priority,
    detectors.late_marks,
    detectors.unheeded_marks,
)
"""Detectors that need the whole time so far: something never happened (no mark, no packet of a
priority received, no delivery), or it happened once and stays so."""
_DEADLOCKS = (detectors.deadlock, detectors.credit_deadlock)
"""Detectors that also run after traffic has stopped, because a deadlock outlasts the traffic."""


def problems_now(spec: Spec, before: LabSnapshot, after: LabSnapshot) -> list[str]:
    """What is wrong at this moment, the gravest first; empty when nothing is. `spec` is the lab's
    spec at its start. After traffic has ended, the only pathologies are failed queue pairs and
    deadlocks."""
    found = list(_pathologies(spec, before, after)) if after.hosts else []
    named = {port for _, own in found for port in own.ports}
    return [
        *(sentence for sentence, _ in found),
        *_watchdogs(spec, after, named),
        *_links(spec, after),
    ]


def needs_second_snapshot(snapshot: LabSnapshot) -> bool:
    """Whether a second snapshot, some time later, can show more."""
    return snapshot.traffic.state == "running" or bool(snapshot.deadlocks)


def _pathologies(
    spec: Spec, before: LabSnapshot, after: LabSnapshot
) -> Iterator[tuple[str, Finding]]:
    """The pathologies that exist now: a sentence and the finding of each."""
    now = spec.model_copy(update={"faults": tuple(f.spec for f in after.faults if f.spec)})
    topology, window_ns = now.topology.build(), after.time_ns - before.time_ns
    whole = RunFacts("so far", recording_so_far(now, before, after), now, topology)
    latest = RunFacts("now", recording_between(now, before, after), now, topology)

    def facts_for(pathology: Pathology) -> RunFacts | None:
        if pathology.signature is detectors.gave_up:
            return whole
        if pathology.signature is held_by_control:
            return None  # it needs the samples of a whole run; two snapshots are only two samples
        runs = after.traffic.state == "running" or pathology.signature in _DEADLOCKS
        if not runs or window_ns <= 0:
            return None
        return whole if pathology.signature in _SO_FAR else latest

    for pathology, found in pathologies(facts_for):
        is_so_far = pathology.signature in _SO_FAR
        when = "since traffic began" if is_so_far else f"the last {format_time_ns(window_ns)}"
        name = pathology.name[0].upper() + pathology.name[1:]
        yield f"{name} ({when}): {found.evidence}", found


def _watchdogs(spec: Spec, snapshot: LabSnapshot, named: Collection[str]) -> Iterator[str]:
    """Storms at ports that no pathology has named: ports between switches, or any port when no
    traffic runs."""
    topology = spec.topology.build()
    for name, own in snapshot.ports.items():
        if name in named:
            continue
        stormed = [
            priority
            for priority in PRIORITIES
            if own["watchdog_detected"][priority] > own["watchdog_restored"][priority]
        ]
        if stormed:
            port, numbers = topology.port_named[name], ", ".join(map(str, stormed))
            acts = detectors.watchdog_acts(spec, port.node)
            yield (
                f"PFC watchdog: {topology.peer[port].node} pauses {name} without a break in "
                f"priority {numbers}; the watchdog "
                f"{_taken_out(own) if acts else 'only reports it (action: alert)'}"
            )


def _taken_out(counters: RawCounters) -> str:
    dropped = sum(sum(counters[f"watchdog_{way}_dropped"]) for way in ("rx", "tx"))
    return f"has taken it out of PFC and has dropped {dropped:,} packets"


def _links(spec: Spec, snapshot: LabSnapshot) -> Iterator[str]:
    if not snapshot.links or not snapshot.links[-1].down:
        return
    last = snapshot.links[-1]
    for port in last.down:
        yield f"Link down: {port}, by {cause_of(snapshot, port)}; {_routes(spec, snapshot, last)}"


def _routes(spec: Spec, snapshot: LabSnapshot, change: LinkChange) -> str:
    if change.in_force_ns is None or change.in_force_ns > snapshot.time_ns:
        return "packets that are routed over it are lost until routes have converged"
    when = format_time_ns(change.in_force_ns)
    if spec.has_bgp:  # each switch changes its own, and nobody knows which is the last
        return f"routes changed last at {when}"
    return f"routes have avoided it since {when}"
