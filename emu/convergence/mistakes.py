"""Mistakes of operators: what they cost as long as nothing fails, and when a link then fails.

    session shut down     BGP: a leaf has no session with one of the switches above it
    wrong ASN             BGP: a leaf has the number of the switches above it, and so no session
    no multipath-relax    BGP: no switch takes routes over different numbers for equal
    leaked default        BGP: another leaf announces a default route, over which nothing is reached
    OpenSM dead           InfiniBand: nobody sweeps, so tables stay as they were

Each is measured at the place of the first repetition: its leaf has the mistake, and its cable is
pulled. The rows `none` are the same without a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from emu.bgp.numbering import autonomous_systems
from emu.convergence.answers import Answer, OnNote, answers
from emu.convergence.events import Incident
from emu.convergence.planes import PLANES, Plane, spec_of
from emu.convergence.probes import patience_ns
from emu.convergence.runs import Ended, Trial, kept_recording, trials
from emu.convergence.stages import Measured
from emu.sensitivities.pinned import at_switches
from emu.spec.from_code import changed
from emu.spec.route_recording import in_a_run
from emu.spec.scenario import Spec
from topologies.graph import Topology

NONE = "none"
DEAD = "OpenSM dead"
_LONGER_THAN_RUNS = 10
"""Times the patience of reliable connections."""


@dataclass(frozen=True)
class Mistake:
    """A mistake, under a control plane."""

    name: str
    plane: str
    what: str
    """In words, with the place."""
    settings: Mapping[str, Any]
    """Keys with dots, and their values."""


@dataclass(frozen=True)
class MistakeTrials:
    """The two runs of a mistake."""

    mistake: Mistake
    usual: Trial
    """Nothing fails."""
    failure: Trial


@dataclass(frozen=True)
class MistakeResult:
    """What a mistake costs."""

    mistake: Mistake
    usual: Ended
    failure: Measured

    @property
    def lost_share(self) -> float:
        """Of all probes, those that are lost although nothing fails."""
        trial = self.usual.trial
        return sum(self.usual.lost.values()) / (trial.pace.count * trial.pairs.flows)

    @property
    def uplinks_used(self) -> int:
        """The leaf's uplinks that carry at least half of an even share, while nothing fails."""
        sent = self.usual.uplink_bytes
        return sum(2 * own * len(sent) >= sum(sent) > 0 for own in sent)

    @property
    def busiest_share(self) -> float | None:
        """Of the leaf's bytes to other switches, those over its busiest uplink; None: no bytes."""
        sent = self.usual.uplink_bytes
        return max(sent) / sum(sent) if sum(sent) else None


def mistakes_of(spec: Spec, incident: Incident, planes: Sequence[Plane]) -> Iterator[Mistake]:
    """The mistakes under the planes bgp and opensm, as far as these are measured."""
    names = [plane.name for plane in planes]
    topology = spec.topology.build()
    if "bgp" in names:
        yield Mistake(NONE, "bgp", "BGP as it should be", {})
        yield from _of_bgp(spec, topology, incident)
    if "opensm" in names:
        yield Mistake(NONE, "opensm", "OpenSM as it should be", {})
        yield Mistake(DEAD, "opensm", "nobody sweeps after the link has failed", {})


def _of_bgp(spec: Spec, topology: Topology, incident: Incident) -> Iterator[Mistake]:
    leaf = incident.leaf
    above = incident.place.partition(":")[2]
    others = [n for n in topology.neighbours[leaf] if n in topology.switch and n != above]
    at_leaf = f"switches.nodes.{leaf}.routing.bgp"
    if others:
        what = f"{leaf} has no session with {others[0]}"
        yield Mistake("session shut down", "bgp", what, {f"{at_leaf}.shutdown": [others[0]]})
    number = autonomous_systems(topology)[above]
    what = f"{leaf} has the number of {above}, {number}"
    yield Mistake("wrong ASN", "bgp", what, {f"{at_leaf}.asn": number})
    everywhere = dict.fromkeys(topology.switch, False)
    settings = at_switches(spec, "routing.bgp.multipath_relax", everywhere)
    yield Mistake("no multipath-relax", "bgp", "at all switches", settings)
    far = next(name for name in topology.leaves if name != leaf)
    key = f"switches.nodes.{far}.routing.bgp.default_originate"
    yield Mistake("leaked default", "bgp", f"{far} announces a default route", {key: True})


def mistake_trials(
    spec: Spec, mistake: Mistake, incident: Incident, folder: Path, note: OnNote
) -> MistakeTrials:
    """The runs of a mistake. Raises as `answers` and `trials`."""
    own = PLANES[mistake.plane]
    plane = replace(own, name=f"{own.name}, {mistake.name}")
    changed_spec = spec_of(spec, own, mistake.settings)
    if mistake.name == DEAD:
        never_ns = _LONGER_THAN_RUNS * patience_ns(changed_spec)
        found = [Answer(None, None, never_ns)]
    else:
        found = answers(changed_spec, own, incident.event, [incident], folder, note)
    (failure,) = trials(plane, changed_spec, [incident], found, folder)
    usual = replace(
        failure,
        plane=replace(plane, name=f"{plane.name}, nothing fails"),
        spec=_without_failure(failure, folder),
    )
    return MistakeTrials(mistake, usual, failure)


def _without_failure(failure: Trial, folder: Path) -> Spec:
    changes: dict[str, Any] = {"faults": []}
    if failure.answer.recording is not None:
        recording = in_a_run(failure.answer.recording, 0, None)
        still = recording._replace(events=(), changes=(), sessions=())
        changes["recorded_routes"] = kept_recording(still, folder)
    return changed(failure.spec, changes, source=failure.name)


def mistake_result(own: MistakeTrials, ended: Callable[[Trial], Ended]) -> MistakeResult:
    """`ended`: the run of a trial."""
    return MistakeResult(own.mistake, ended(own.usual), Measured(ended(own.failure)))
