"""What each control plane does after an event, measured or by its settings.

static, adaptive    routes change `routing.convergence` after a link is lost; nothing else
bgp...              the real FRR, which starts once for all repetitions of an event
opensm...           the real OpenSM: from the pulled cable to the tables of all switches, the median
                    of several times

OpenSM's time is kept in the folder of the results, as runs are that use it. FRR's recordings are in
the user's cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from emu.bgp.recorder import record_answers
from emu.convergence.events import Event, Incident
from emu.convergence.planes import Plane
from emu.output_dir import make_folder, write_text
from emu.spec.outages import slowest_convergence_ps
from emu.spec.route_recording import LinkEvent, RouteRecording
from emu.spec.scenario import Spec
from emu.subnet.manager import ManagedFabric
from emu.subnet.sm_sweeps import manager_hosts, policy_of
from emu.units import PS_PER_NS

OnNote = Callable[[str], None]
_ALL_UP = LinkEvent(0, ())
_SWEEPS = 3
"""How often OpenSM answers each event: a busy machine delays single sweeps. After some ten traps of
a switch in a row, OpenSM does not answer its next ones."""


@dataclass(frozen=True)
class Answer:
    """What a control plane does after an event. Times are since the event, in ns."""

    detected_ns: int | None
    """When it knows; None: never."""
    decided_ns: int | None
    """When it has nothing more to say."""
    convergence_ns: int
    """The spec's `routing.convergence` of the run."""
    recording: RouteRecording | None = None
    """Of BGP."""

    @property
    def lasts_ns(self) -> int:
        """Until all routes have changed, at the latest."""
        return max(self.convergence_ns, self.decided_ns or 0)


def answers(
    spec: Spec,
    plane: Plane,
    event: Event,
    repetitions: Sequence[Incident],
    folder: Path,
    note: OnNote,
) -> list[Answer]:
    """The answers of a plane to an event, one for each repetition. `spec`: of the plane. `folder`:
    of the results. Raises HostError, FabricError, EmuError, OSError."""
    if plane.is_bgp:
        return _of_bgp(spec, event, repetitions, note)
    if plane.is_opensm and event is not Event.LINK_SILENT:
        return [
            Answer(0, taken_ns, taken_ns)
            for taken_ns in _sweeps_ns(spec, event, repetitions, folder)
        ]
    usual_ns = slowest_convergence_ps(spec) // PS_PER_NS
    if event is Event.LINK_SILENT:
        return [Answer(None, None, usual_ns)] * len(repetitions)
    return [Answer(0, usual_ns, usual_ns)] * len(repetitions)


def _states(event: Event, repetitions: Sequence[Incident]) -> list[LinkEvent]:
    """The states of the links that a control plane goes through: for each repetition the event, and
    all links up again. For a returning link, the first of them prepares the event."""
    lost = (
        incident.before if event is Event.LINK_UP else incident.after for incident in repetitions
    )
    return [state for own in lost for state in (own or _ALL_UP, _ALL_UP)]


def _of_bgp(
    spec: Spec, event: Event, repetitions: Sequence[Incident], note: OnNote
) -> list[Answer]:
    recordings = record_answers(spec, _states(event, repetitions), note)
    own = recordings[1::2] if event is Event.LINK_UP else recordings[::2]
    usual_ns = slowest_convergence_ps(spec) // PS_PER_NS
    return [
        Answer(
            detected_ns=min((change.at_ns for change in answer.sessions), default=None),
            decided_ns=max((c.at_ns for c in answer.changes if not c.by_kernel), default=None),
            convergence_ns=usual_ns,
            recording=answer,
        )
        for answer in own
    ]


def _sweeps_ns(
    spec: Spec, event: Event, repetitions: Sequence[Incident], folder: Path
) -> list[int]:
    """How long OpenSM takes to answer each repetition, the median of several times."""
    states = _states(event, repetitions)
    kept = folder / "sweeps" / f"{_key(spec, states)}.json"
    if not kept.exists():
        make_folder(kept.parent)
        write_text(kept, json.dumps(_measured_ns(spec, states)))
    taken: list[int] = json.loads(kept.read_text())
    return taken[1::2] if event is Event.LINK_UP else taken[::2]


def _measured_ns(spec: Spec, states: Sequence[LinkEvent]) -> list[int]:
    """What OpenSM takes for each state. It starts anew for each place."""
    return [
        taken
        for lost, back in zip(states[::2], states[1::2], strict=True)
        for taken in _at_a_place(spec, (lost, back))
    ]


def _at_a_place(spec: Spec, states: Sequence[LinkEvent]) -> list[int]:
    topology = spec.topology.build()
    master = manager_hosts(spec, topology)[:1]
    cut = [frozenset(topology.cables[number] for number in state.down) for state in states]
    with (
        TemporaryDirectory(prefix="emu-subnet-") as workdir,
        ManagedFabric(topology, policy_of(spec), Path(workdir), hosts=master) as managed,
    ):
        managed.subnet()
        rounds = [[managed.seconds_to_tables(down) for down in cut] for _ in range(_SWEEPS)]
    return [round(1e9 * median(of_state)) for of_state in zip(*rounds, strict=True)]


def _key(spec: Spec, states: Sequence[LinkEvent]) -> str:
    """Differs for all that OpenSM's work depends on."""
    topology = spec.topology.build()
    master = manager_hosts(spec, topology)[:1]
    parts = [repr(policy_of(spec)), repr(topology.cables), repr(states), repr(master)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
