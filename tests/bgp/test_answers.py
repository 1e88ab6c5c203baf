"""FRR's answers to states of the links, one after another, and each as the recording of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.bgp.recorder import record_answers
from emu.errors import EmuError
from emu.spec.model import Spec, spec_from_text
from emu.spec.outages import link_events
from emu.spec.rerouting import reroutings
from emu.spec.route_recording import (
    LinkEvent,
    RouteChange,
    RouteRecording,
    SessionChange,
    in_a_run,
    write_recording,
)
from tests.support.needs import need

TEXT = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {routing: {control_plane: bgp}}
traffic: [{name: f, pattern: pair, from: h1, to: h3, size: 1MB}]
time_limit: 10s
"""
CABLE = "leaf1:spine1"


def spec_of(faults: str = "") -> Spec:
    return spec_from_text((TEXT + faults).encode(), source="spec")


def number_of(spec: Spec) -> int:
    topology = spec.topology.build()
    return topology.cables.index(topology.cable[topology.port_named[CABLE]])


def test_an_answer_moves_to_the_time_of_its_event() -> None:
    answer = RouteRecording(
        control_plane="FRR",
        confs={},
        events=(LinkEvent(0, ()),),
        first={},
        changes=(RouteChange(70, "leaf1", {"10.0.0.3/32": (3, 4)}, False),),
        sessions=(SessionChange(50, "leaf1", "leaf1-eth3", True),),
        started_s=1.0,
        holds_until_ns=900,
        failed_sessions=(),
        late_ns=0,
    )
    moved = in_a_run(answer, 1000, LinkEvent(0, (2,)))
    assert moved.events == (LinkEvent(0, (2,)), LinkEvent(1000, ()))
    assert [change.at_ns for change in moved.changes] == [1070]
    assert [change.at_ns for change in moved.sessions] == [1050]
    assert moved.holds_until_ns == 1900
    assert in_a_run(answer, 5, None).events == (LinkEvent(5, ()),)


@pytest.mark.timeout(120)
def test_each_answer_is_that_of_a_run_with_the_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cable is lost and comes back. Moved into a run with these faults, the first answer ends
    with the routes without the cable, and the second begins with them and ends with all."""
    need("namespaces", "FRR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spec = spec_of()
    number = number_of(spec)
    states = [LinkEvent(0, (number,)), LinkEvent(0, ())]
    notes: list[str] = []
    lost, back = record_answers(spec, states, notes.append)
    assert notes[0].startswith("FRR runs once")
    again: list[str] = []
    assert record_answers(spec, states, again.append) == (lost, back)
    assert not any(note.startswith("FRR runs once") for note in again)

    found = {}
    for name, answer, at_ns, before, faults in (
        ("lost", lost, 1_000_000, None, f"faults: [{{link-down: {{cable: '{CABLE}'}}, at: 1ms}}]"),
        (
            "back",
            back,
            5_000_000,
            states[0],
            f"faults: [{{link-down: {{cable: '{CABLE}'}}, at: 0s, for: 5ms}}]",
        ),
    ):
        run = spec_of(faults)
        path = tmp_path / f"{name}.json"
        recording = in_a_run(answer, at_ns, before)
        write_recording(recording, path)
        assert recording.events == link_events(run)
        changes = reroutings(run.model_copy(update={"recorded_routes": str(path)}))
        found[name] = {(one.switch, host): p for one in changes for host, p in one.changes.items()}
    assert len(found["lost"]["leaf2", "h1"]) == 1
    assert len(found["back"]["leaf2", "h1"]) == 2
    assert not any(change.established for change in lost.sessions)
    assert all(change.established for change in back.sessions)


def test_a_file_of_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("namespaces", "FRR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spec = spec_of()
    states = [LinkEvent(0, (number_of(spec),))]
    record_answers(spec, states)
    (kept,) = (tmp_path / "emu" / "routes").glob("*.json")
    kept.write_text("{}")
    with pytest.raises(EmuError, match="remove it"):
        record_answers(spec, states)
