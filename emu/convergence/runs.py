"""The runs of a measurement: for each control plane, event and repetition one, on the workers of
sweeps. Runs that are in the folder are not done again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from emu.convergence.answers import Answer
from emu.convergence.events import Event, Incident
from emu.convergence.planes import Plane
from emu.convergence.probes import (
    SIZE_BYTES,
    Pace,
    Pairs,
    interval_ns,
    is_reliable,
    pace_of,
    pairs_of,
    patience_ns,
    traffic,
)
from emu.errors import EmuError
from emu.models import PACKETS
from emu.output_dir import make_folder
from emu.runtime.runner import ignore
from emu.sensitivities.pinned import at_switches
from emu.sensitivities.places import SENT
from emu.spec.from_code import changed, with_values
from emu.spec.learned_routes import learned_reroutings
from emu.spec.outages import Rerouting
from emu.spec.rerouting import reroutings
from emu.spec.route_recording import RouteRecording, in_a_run, write_recording
from emu.spec.scenario import Spec
from emu.sweeps.cluster import cores
from emu.sweeps.evaluate import Evaluator
from emu.sweeps.plan import Basis, PlannedRun, base_of
from emu.sweeps.progress import SweepLine
from emu.sweeps.store import Row, Store
from emu.units import PS_PER_NS

if TYPE_CHECKING:
    import pandas as pd

_LONGER = 1.3
"""A run goes on after all routes have changed, by this factor."""
_LEAST_NS = 20_000
"""A run goes on for so long after the event at least."""
_FOR_SILENCE = 1.2
"""Times the patience of reliable connections, if nobody finds the failure."""
_MARGIN_NS = 10_000


@dataclass(frozen=True)
class Trial:
    """A run: a control plane, an incident, and how it is measured."""

    plane: Plane
    incident: Incident
    answer: Answer
    pairs: Pairs
    pace: Pace
    in_force_ns: int | None
    """From the event until the last switch has changed its routes; None: none changes any."""
    spec: Spec

    @property
    def name(self) -> str:
        return f"{self.plane.name} {self.incident.event} {self.incident.repetition}"


def trials(
    plane: Plane,
    spec: Spec,
    repetitions: Sequence[Incident],
    answers: Sequence[Answer],
    folder: Path,
) -> list[Trial]:
    """The runs of an event under a plane. They have the same interval. `spec`: of the plane.
    Raises SpecError, OSError, EmuError."""
    topology = spec.topology.build()
    pairs = [pairs_of(topology, incident) for incident in repetitions]
    changed_ns = [_in_force_ns(spec, *both) for both in zip(repetitions, answers, strict=True)]
    lasts_ns = [_horizon_ns(spec, *both) for both in zip(answers, changed_ns, strict=True)]
    horizon_ns = max(lasts_ns)
    interval = interval_ns(topology, pairs, horizon_ns)
    made = []
    for incident, answer, own, in_force_ns in zip(
        repetitions, answers, pairs, changed_ns, strict=True
    ):
        settled_ns = answer.convergence_ns + _MARGIN_NS
        start_ns = settled_ns if incident.event is Event.LINK_UP else 0
        pace = pace_of(interval, horizon_ns, start_ns)
        run = _spec_of(spec, incident, answer, own, pace, folder)
        made.append(Trial(plane, incident, answer, own, pace, in_force_ns, run))
    return made


def _in_force_ns(spec: Spec, incident: Incident, answer: Answer) -> int | None:
    """When the last switch changes its routes after the event."""
    if spec.fabric_kind.has_subnet_manager:
        return answer.decided_ns
    at_ns = _MARGIN_NS + 2 * answer.lasts_ns
    changes = {"faults": [_fault(incident, at_ns)], "time_limit": f"{2 * at_ns}ns"}
    run = changed(spec, changes, source=spec.name)
    if answer.recording is None:
        found: Iterable[Rerouting] = reroutings(run)
    else:
        found = learned_reroutings(run, in_a_run(answer.recording, at_ns, incident.before))
    times = [own.at_ps for own in found if own.cause_ps == at_ns * PS_PER_NS]
    return max(times) // PS_PER_NS - at_ns if times else None


def _horizon_ns(spec: Spec, answer: Answer, in_force_ns: int | None) -> int:
    """How long probes go on after the event."""
    if answer.detected_ns is None:
        return round(_FOR_SILENCE * patience_ns(spec))
    return max(_LEAST_NS, round(_LONGER * (in_force_ns or answer.convergence_ns)))


def _spec_of(
    spec: Spec, incident: Incident, answer: Answer, pairs: Pairs, pace: Pace, folder: Path
) -> Spec:
    source = f"{spec.name}: {incident.event}"
    changes: dict[str, Any] = {
        "seed": incident.seed,
        "traffic": list(traffic(pairs, pace)),
        "faults": [_fault(incident, pace.event_ns)],
        "time_limit": f"{pace.last_ns + 2 * patience_ns(spec)}ns",
    }
    if answer.recording is not None:
        recording = in_a_run(answer.recording, pace.event_ns, incident.before)
        changes["recorded_routes"] = kept_recording(recording, folder)
    own = spec
    if spec.fabric_kind.has_subnet_manager:
        measured = dict.fromkeys(spec.topology.build().switch, f"{answer.convergence_ns}ns")
        own = with_values(spec, at_switches(spec, "routing.convergence", measured), source=source)
    return changed(own, changes, source=source)


def kept_recording(recording: RouteRecording, folder: Path) -> str:
    """Writes a recording into the folder. Returns the file, which is another one for another
    recording, so that runs with it have another key. Raises OSError, EmuError."""
    name = hashlib.sha256(repr(recording).encode()).hexdigest()[:32]
    path = folder / "routes" / f"{name}.json"
    make_folder(path.parent)
    write_recording(recording, path)
    return str(path.absolute())


def _fault(incident: Incident, at_ns: int) -> dict[str, Any]:
    at = f"{at_ns}ns"
    match incident.event:
        case Event.LINK_DOWN:
            return {"at": at, "link-down": {"cable": incident.place}}
        case Event.LINK_SILENT:
            return {"at": at, "loss": {"cable": incident.place, "every": 1}}
        case Event.SWITCH_DOWN:
            return {"at": at, "switch-down": {"switch": incident.place}}
        case Event.LINK_UP:
            return {"at": "0ns", "for": at, "link-down": {"cable": incident.place}}


@dataclass(frozen=True)
class Ended:
    """A run that is over: its row, and the packets that each flow of probes has lost."""

    trial: Trial
    row: Row
    lost: Mapping[str, int]
    """Flow -> packets; only flows that lost any."""
    uplink_bytes: tuple[int, ...]
    """What each of the leaf's ports to other switches sent."""


def run_trials(
    name: str,
    planned: Sequence[Trial],
    folder: Path,
    *,
    workers: int | None,
    stream: TextIO | None,
    on_note: Callable[[str], None] = ignore,
) -> tuple[list[Ended], int]:
    """Does the runs. Returns them in the order of `planned`, and how many were done now. Raises
    FabricError, OSError; EmuError if a run fails."""
    bases = {trial.name: base_of(trial.spec) for trial in planned}
    basis = Basis(name, bases, (), PACKETS.name, ("flows", "ports"), "convergence")
    store = Store(folder)
    by_name = {trial.name: trial for trial in planned}
    rows: dict[str, Row] = {}
    with (
        Evaluator(
            basis, store, workers=workers or cores(), scheduler=None, on_note=on_note
        ) as evaluator,
        SweepLine(name, len(planned), 0, stream) as line,
    ):
        for trial in planned:
            evaluator.submit(basis.run(0, {}, trial.incident.seed, trial.name))
        while len(rows) < len(planned):
            for run, row in evaluator.ended():
                rows[run.variant] = row
                line.add(failed=bool(row["error"]))
                _refuse_failure(run, row)
    return [_ended(by_name[own], rows[own], store) for own in by_name], evaluator.computed


def _refuse_failure(run: PlannedRun, row: Row) -> None:
    if row["error"]:
        raise EmuError(f"{run.variant}: {row['error']}")


def _ended(trial: Trial, row: Row, store: Store) -> Ended:
    flows = store.table("flows", row["key"])
    reliable = flows["traffic"].map(is_reliable)
    probes = flows[~reliable & flows["end_ns"].isna()]  # a flow ends when it has all its packets
    delivered = probes["delivered_bytes"].fillna(0) // SIZE_BYTES
    counts = zip(probes["name"].tolist(), delivered.tolist(), strict=True)
    lost = {name: trial.pace.count - int(arrived) for name, arrived in counts}
    return Ended(trial, row, lost, _uplink_bytes(trial, store.table("ports", row["key"])))


def _uplink_bytes(trial: Trial, ports: pd.DataFrame) -> tuple[int, ...]:
    topology = trial.spec.topology.build()
    sent = dict(zip(ports["port"].tolist(), ports[SENT].tolist(), strict=True))
    own = topology.ports[trial.incident.leaf]
    uplinks = [port for port in own if topology.peer[port].node in topology.switch]
    return tuple(sent[topology.port_name[port]] for port in uplinks)
