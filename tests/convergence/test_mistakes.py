"""Mistakes of operators: which there are, and what two of them cost."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from emu.convergence.events import Event, incidents
from emu.convergence.measure import run_convergence
from emu.convergence.mistakes import mistake_result, mistake_trials, mistakes_of
from emu.convergence.planes import PLANES
from emu.convergence.request import ConvergenceRequest, setup_of
from emu.convergence.runs import run_trials
from emu.errors import UsageError
from emu.explain.results_schema import schema
from emu.spec.model import Spec, spec_from_text
from tests.support.needs import need

pytest.importorskip("distributed", reason="needs Dask (emu[sweep])")
pytest.importorskip("pyarrow", reason="needs pyarrow (emu[sweep])")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def spec() -> Spec:
    text = """
name: two
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
hosts: {nic: {timeout: 8}}
"""
    return spec_from_text(text.encode(), source="two")


def test_mistakes_are_at_the_leaf_whose_link_fails(spec: Spec) -> None:
    (incident,) = incidents(spec, [Event.LINK_DOWN], 1)
    found = {own.name: own for own in mistakes_of(spec, incident, list(PLANES.values()))}
    shut = found["session shut down"].settings[
        f"switches.nodes.{incident.leaf}.routing.bgp.shutdown"
    ]
    assert [incident.place] != [f"{incident.leaf}:{shut[0]}"]
    assert f"switches.nodes.{incident.leaf}.routing.bgp.asn" in found["wrong ASN"].settings
    assert {"no multipath-relax", "leaked default", "OpenSM dead"} <= found.keys()
    of_ib = [own.plane for own in mistakes_of(spec, incident, [PLANES["opensm"]])]
    assert of_ib == ["opensm", "opensm"]


def test_mistakes_need_a_plane_that_has_them(spec: Spec) -> None:
    with pytest.raises(UsageError, match="--mistakes: they are those of bgp and opensm"):
        setup_of(ConvergenceRequest(spec, planes=("static",), mistakes=True))


def test_without_opensm_a_lost_link_is_never_routed_around(spec: Spec, tmp_path: Path) -> None:
    need("OpenSM")
    request = ConvergenceRequest(spec, ("opensm",), ("link-down",), 1, mistakes=True, workers=2)
    found = run_convergence(setup_of(request), tmp_path, stream=None)
    none, dead = found.mistakes
    assert none.lost_share == dead.lost_share == 0
    assert none.failure.restored_ns is not None
    assert dead.failure.restored_ns is None
    assert dead.failure.gave_up
    document = json.loads(found.files["summary"].read_text())
    jsonschema.validate(document, schema("convergence"))
    assert [own["name"] for own in document["mistakes"]] == ["none", "OpenSM dead"]
    assert "OpenSM dead" in found.files["page"].read_text()


def test_a_session_that_is_shut_down_leaves_no_other_path(
    spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two uplinks one is not used, which loses nothing; when the other fails, the leaf is cut
    off for ever."""
    need("namespaces", "FRR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (incident,) = incidents(spec, [Event.LINK_DOWN], 1)
    mistake = next(
        own
        for own in mistakes_of(spec, incident, [PLANES["bgp"]])
        if own.name == "session shut down"
    )
    both = mistake_trials(spec, mistake, incident, tmp_path, lambda _: None)
    ended, _ = run_trials("two", [both.usual, both.failure], tmp_path, workers=2, stream=None)
    by_name = {own.trial.name: own for own in ended}
    found = mistake_result(both, lambda trial: by_name[trial.name])
    assert (found.lost_share, found.uplinks_used, found.busiest_share) == (0, 1, 1)
    assert found.failure.flows_hit == both.failure.pairs.flows
    assert found.failure.restored_ns is None
