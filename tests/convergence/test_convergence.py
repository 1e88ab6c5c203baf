"""Whole measurements: lost times against closed forms, the real FRR and OpenSM, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from emu.cli.main import cli
from emu.convergence.measure import Comparison, run_convergence
from emu.convergence.request import ConvergenceRequest, setup_of
from emu.convergence.stages import Measured, Result
from emu.errors import ExitCode, HostError, UsageError
from emu.explain.results_schema import schema
from emu.lab import probe
from emu.lab.frr import daemons
from emu.spec.model import spec_from_text
from tests.support.needs import need

pytest.importorskip("distributed", reason="needs Dask (emu[sweep])")
pytest.importorskip("pyarrow", reason="needs pyarrow (emu[sweep])")

pytestmark = pytest.mark.timeout(300)
SPEC = """
name: two
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {routing: {convergence: 200us}}
hosts: {nic: {timeout: 8}}
"""
LEFT_ON_THE_WAY = 4
"""Packets of a flow that may be on their way when the last routes change, at the intervals here."""


def measured(folder: Path, planes: str, events: str = "", repetitions: int = 1) -> Comparison:
    def names(text: str) -> tuple[str, ...]:
        return tuple(filter(None, text.split(",")))

    spec = spec_from_text(SPEC.encode(), source="two")
    request = ConvergenceRequest(spec, names(planes), names(events), repetitions, workers=2)
    return run_convergence(setup_of(request), folder, stream=None)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """static and adaptive, all events, twice."""
    folder = tmp_path_factory.mktemp("static")
    return measured(folder, "static,adaptive", repetitions=2)


def result(comparison: Comparison, plane: str, event: str) -> Result:
    found = [r for r in comparison.results if (r.plane.name, r.event) == (plane, event)]
    (own,) = found
    return own


def packets(own: Measured, time_ns: int) -> float:
    """The probes of a flow in so much time."""
    return time_ns / own.ended.trial.pace.interval_ns


@pytest.mark.parametrize("event", ["link-down", "switch-down"])
def test_static_routes_lose_what_is_sent_in_convergence(static: Comparison, event: str) -> None:
    """A flow over the lost link loses all its packets for 200 us, others none. Hashes put about
    half of the flows on each of two spines."""
    for own in result(static, "static", event).repetitions:
        expected = packets(own, 200_000)
        for count in own.ended.lost.values():
            assert 0 <= count - expected <= LEFT_ON_THE_WAY
        share = own.flows_hit / own.ended.trial.pairs.flows
        assert 0.25 < share < 0.75
        assert own.in_force_ns == own.decided_ns == 200_000
        assert own.restored_ns is not None
        assert 200_000 <= own.restored_ns <= 200_000 + LEFT_ON_THE_WAY * 500


@pytest.mark.parametrize("event", ["link-down", "switch-down"])
def test_adaptive_routing_hits_all_flows_and_loses_as_much(static: Comparison, event: str) -> None:
    """Each packet takes the shortest of two queues, so each flow loses a share."""
    for own in result(static, "adaptive", event).repetitions:
        assert own.flows_hit == own.ended.trial.pairs.flows
        assert own.lost_ns == pytest.approx(200_000 / 2, rel=0.1)


@pytest.mark.parametrize("plane", ["static", "adaptive"])
def test_silent_failure_is_never_found_by_them(static: Comparison, plane: str) -> None:
    """Flows by hash lose every packet from the event to the end. The run outlasts the retries of
    reliable connections, so those on the link give up."""
    found = result(static, plane, "link-silent")
    for own in found.repetitions:
        assert (own.detected_ns, own.in_force_ns, own.restored_ns) == (None, None, None)
        pace = own.ended.trial.pace
        after = sum(
            pace.start_ns + number * pace.interval_ns > pace.event_ns
            for number in range(pace.count)
        )
        if plane == "static":
            assert set(own.ended.lost.values()) == {after}
        assert sum(own.ended.lost.values()) >= after
    assert any(own.gave_up for own in found.repetitions)
    assert found.spread("restored_ns").median is None


@pytest.mark.parametrize("plane", ["static", "adaptive"])
def test_returned_link_loses_nothing(static: Comparison, plane: str) -> None:
    for own in result(static, plane, "link-up").repetitions:
        assert own.ended.lost == {}
        assert own.restored_ns == 0
        assert own.in_force_ns == 200_000


def test_planes_have_the_same_places_probes_and_seeds(static: Comparison) -> None:
    for event in static.setup.events:
        first, second = (result(static, name, event) for name in ("static", "adaptive"))
        for one, other in zip(first.repetitions, second.repetitions, strict=True):
            assert one.ended.trial.incident == other.ended.trial.incident
            assert one.ended.trial.pairs == other.ended.trial.pairs
            assert one.ended.trial.spec.seed == other.ended.trial.spec.seed


def test_the_document_has_its_schema_and_every_repetition(static: Comparison) -> None:
    document: dict[str, Any] = json.loads(static.files["summary"].read_text())
    jsonschema.validate(document, schema("convergence"))
    assert document["schema"] == "emu.convergence/1"
    assert document["computed"] == 16
    assert len(document["results"]) == 8
    silent = next(r for r in document["results"] if r["event"] == "link-silent")
    assert silent["figures"]["restored_ns"]["median"] is None
    assert [one["seed"] for one in silent["repetitions"]] == [1, 2]
    page = static.files["page"].read_text()
    assert "not found" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_runs_in_the_folder_are_not_done_again(static: Comparison) -> None:
    again = measured(static.files["page"].parent, "static,adaptive", repetitions=2)
    assert again.computed == 0
    assert [own.restored_ns for r in again.results for own in r.repetitions] == [
        own.restored_ns for r in static.results for own in r.repetitions
    ]


def test_bgp_restores_traffic_when_its_last_route_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real FRR, once for a cable that is pulled and comes back, and once for silence."""
    need("namespaces", "FRR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = measured(tmp_path, "bgp-bfd", "link-down,link-silent,link-up")
    assert len(list((tmp_path / "cache" / "emu" / "routes").glob("*.json"))) == 2
    for event in ("link-down", "link-silent"):
        (own,) = result(found, "bgp-bfd", event).repetitions
        recording = own.ended.trial.answer.recording
        assert recording is not None
        interval_ns = own.ended.trial.pace.interval_ns
        last_ns = max(change.at_ns for change in recording.changes)
        assert own.decided_ns == last_ns
        assert own.in_force_ns is not None
        assert own.restored_ns is not None
        assert own.restored_ns == pytest.approx(own.in_force_ns, abs=interval_ns)
        assert own.in_force_ns == pytest.approx(last_ns, abs=3_000_000)
        assert own.detected_ns == min(change.at_ns for change in recording.sessions)
        assert 0 < own.detected_ns < own.in_force_ns
    (back,) = result(found, "bgp-bfd", "link-up").repetitions
    assert back.ended.lost == {}
    assert back.in_force_ns is not None
    assert back.in_force_ns > 100_000_000


def test_opensm_restores_traffic_after_the_sweep_that_was_measured(tmp_path: Path) -> None:
    """The real OpenSM. What it takes is kept, so that the same runs are read again."""
    need("OpenSM")
    found = measured(tmp_path, "opensm", "link-down,link-silent,switch-down,link-up")
    for event in ("link-down", "switch-down"):
        (own,) = result(found, "opensm", event).repetitions
        assert own.decided_ns is not None
        assert 100_000 < own.decided_ns < 5_000_000_000
        interval_ns = own.ended.trial.pace.interval_ns
        assert own.restored_ns == pytest.approx(own.decided_ns, abs=LEFT_ON_THE_WAY * interval_ns)
        assert own.flows_hit
    (silent,) = result(found, "opensm", "link-silent").repetitions
    assert (silent.detected_ns, silent.restored_ns) == (None, None)
    (back,) = result(found, "opensm", "link-up").repetitions
    assert back.ended.lost == {}
    assert measured(tmp_path, "opensm").computed == 0


@pytest.mark.parametrize(("plane", "program"), [("bgp", "zebra"), ("opensm", "opensm")])
def test_missing_programs_are_named_before_anything_runs(
    plane: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("namespaces")
    monkeypatch.setattr(daemons, "_LIBRARY", tmp_path / "none")
    monkeypatch.setattr(probe, "is_installed", lambda name: name != "opensm")
    with pytest.raises(HostError, match=program):
        measured(tmp_path / "out", plane)
    assert not (tmp_path / "out").exists()


def test_the_command_prints_the_document_alone(tmp_path: Path) -> None:
    file = tmp_path / "two.emu.yml"
    file.write_text(SPEC)
    words = ["convergence", str(file), "--planes", "static", "--events", "link-down"]
    words += ["--repetitions", "1", "--out", str(tmp_path / "out"), "--quiet", "--json"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == ExitCode.OK, done.output
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema("convergence"))
    assert "link-down: a cable is pulled" in done.stderr


def test_the_command_refuses_unknown_planes(tmp_path: Path) -> None:
    file = tmp_path / "two.emu.yml"
    file.write_text(SPEC)
    done = CliRunner().invoke(cli, ["convergence", str(file), "--planes", "ospf"])
    assert isinstance(done.exception, UsageError)
    assert "there is no control plane 'ospf'" in str(done.exception)
