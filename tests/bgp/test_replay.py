"""Recorded routes in a run on the virtual clock, and in its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.measure.recording import Recording
from emu.report.run_view import RunFacts
from emu.report.store import load_run, save_run
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import Spec, spec_from_text
from emu.spec.rerouting import reroutings
from emu.spec.route_recording import Fib, LinkEvent, RouteChange, RouteRecording, write_recording

SPEC = b"""
topology: {kind: leaf-spine, spines: 1, leaves: 3, hosts_per_leaf: 1}
switches: {routing: {control_plane: bgp, convergence: 1us}}
faults: [{link-down: {cable: "leaf1:spine1"}, at: 20us}]
traffic: [{name: flow, pattern: pair, from: h2, to: h1, op: write, size: 1MB}]
time_limit: 60us
payload: elided
"""
H1, H2, H3 = (f"10.0.0.{number}/32" for number in (1, 2, 3))
US = 1000
NS_OF_A_PACKET = 334
"""4096 bytes with headers, preamble and gap at 100 Gb/s."""


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """leaf1 is cut off at 20 us; spine1 has no route from 21 us on, leaf2 none from 40 us on."""
    first: dict[str, Fib] = {
        "spine1": {H1: (1,), H2: (2,), H3: (3,)},
        **{
            leaf: {host: (2,) for host in (H1, H2, H3) if host != own}
            for leaf, own in (("leaf1", H1), ("leaf2", H2), ("leaf3", H3))
        },
    }
    changes = (
        RouteChange(22 * US, "spine1", {H1: ()}, by_kernel=True),
        RouteChange(40 * US, "leaf2", {H1: ()}, by_kernel=False),
    )
    confs = dict.fromkeys(first, "router bgp 65001\n")
    events = (LinkEvent(20 * US, (1,)),)
    recording = RouteRecording("FRR", confs, events, first, changes, (), 1.0, None, (), 0)
    write_recording(recording, tmp_path / "routes.json")
    routes = str(tmp_path / "routes.json")
    return spec_from_text(SPEC, source="spec").model_copy(update={"recorded_routes": routes})


def _run(spec: Spec, folder: Path) -> Recording:
    return VirtualRunner().run(spec, out=folder)


def _without_route(recording: Recording, switch: str) -> int:
    """The packets that a switch dropped because it had no route."""
    return sum(
        counters.get("no_route", 0)
        for port, counters in recording.ports.items()
        if port.startswith(f"{switch}:")
    )


def test_packets_are_dropped_where_and_while_there_is_no_route(spec: Spec, tmp_path: Path) -> None:
    """spine1 drops what leaf2 sends it until leaf2 knows; leaf2 drops all that comes later."""
    recording = _run(spec, tmp_path)
    cable = spec.topology.build().cables[3]
    from_leaf_ns = spec.switch("leaf2").latency_ps / 1000 + NS_OF_A_PACKET + cable.delay_ps / 1000
    assert _without_route(recording, "spine1") == pytest.approx(
        ((40 - 21) * US + from_leaf_ns) / NS_OF_A_PACKET, abs=2
    )
    assert _without_route(recording, "leaf2") == pytest.approx(
        (60 - 40) * US / NS_OF_A_PACKET, abs=3
    )


def test_results_have_routes_and_configurations(spec: Spec, tmp_path: Path) -> None:
    run = RunFacts("run", _run(spec, tmp_path), spec, spec.topology.build())
    save_run(run, tmp_path / "results")
    (tmp_path / "results").rename(tmp_path / "moved")
    assert (tmp_path / "moved/frr/leaf2.conf").read_text() == "router bgp 65001\n"
    again = load_run(tmp_path / "moved")
    (tmp_path / "routes.json").unlink()
    assert reroutings(again.spec)[-1].cause_ps == 20_000_000
    assert _run(again.spec, tmp_path / "again").ports == run.recording.ports
