"""Where events happen, who probes, and what cannot be measured."""

from __future__ import annotations

import pytest

from emu.convergence.events import Event, incidents
from emu.convergence.planes import PLANES
from emu.convergence.probes import interval_ns, pace_of, pairs_of
from emu.convergence.request import ConvergenceRequest, setup_of
from emu.convergence.stages import P99_FROM, Spread
from emu.errors import UsageError
from emu.spec.model import Spec, spec_from_text

CLOS = "topology: {kind: leaf-spine, spines: 3, leaves: 4, hosts_per_leaf: 4}\nseed: %d\n"
TREE = "topology: {kind: fat-tree, k: 4}\n"
SMALL = "topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}\n"


def spec_of(text: str) -> Spec:
    return spec_from_text(text.encode(), source="spec")


def refused(text: str, **asked: tuple[str, ...]) -> str:
    with pytest.raises(UsageError) as error:
        setup_of(ConvergenceRequest(spec_of(text), **asked))  # type: ignore[arg-type]
    return str(error.value)


def test_repetitions_are_at_other_places_with_other_seeds() -> None:
    found = incidents(spec_of(CLOS % 1), [Event.LINK_DOWN, Event.LINK_UP], 12)
    down, up = found[:12], found[12:]
    assert len({own.place for own in down}) == 12  # all cables of a leaf to a spine
    assert [own.seed for own in down] == list(range(1, 13))
    assert [own.place for own in up] == [own.place for own in down]
    other = incidents(spec_of(CLOS % 2), [Event.LINK_DOWN], 12)
    assert [own.place for own in other] != [own.place for own in down]


def test_places_come_again_where_there_are_few() -> None:
    found = incidents(spec_of(CLOS % 1), [Event.SWITCH_DOWN], 5)
    assert [own.place for own in found[3:]] == [own.place for own in found[:2]]
    assert {own.place for own in found} == {"spine1", "spine2", "spine3"}
    assert len({own.seed for own in found}) == 5


@pytest.mark.parametrize("text", [CLOS % 1, TREE])
def test_events_take_all_cables_of_their_place(text: str) -> None:
    spec = spec_of(text)
    topology = spec.topology.build()
    for own in incidents(spec, list(Event), 3):
        ends = [{topology.cables[n].a.node, topology.cables[n].b.node} for n in own.cables]
        if own.event is Event.SWITCH_DOWN:
            assert own.place not in topology.leaves
            assert all(own.place in nodes for nodes in ends)
            assert len(ends) == len(topology.ports[own.place])
        else:
            assert ends == [set(own.place.split(":"))]
            assert own.place.startswith(own.leaf)


@pytest.mark.parametrize("text", [CLOS % 1, TREE, SMALL])
def test_probes_go_both_ways_between_the_leaf_and_others(text: str) -> None:
    spec = spec_of(text)
    topology = spec.topology.build()
    (own,) = incidents(spec, [Event.LINK_DOWN], 1)
    pairs = pairs_of(topology, own)
    assert pairs == pairs_of(topology, own)
    for near, far in pairs.of_leaf:
        assert set(near) <= set(topology.leaves[own.leaf])
        assert not set(far) & set(topology.leaves[own.leaf])
    uplinks = sum(topology.peer[port].node in topology.switch for port in topology.ports[own.leaf])
    assert pairs.flows / 2 >= 8 * uplinks


def test_probes_are_slower_where_a_run_is_longer_and_never_fill_a_link() -> None:
    spec = spec_of(SMALL)
    topology = spec.topology.build()
    (own,) = incidents(spec, [Event.LINK_DOWN], 1)
    pairs = pairs_of(topology, own)
    short, long = (interval_ns(topology, [pairs], ns) for ns in (1_000, 10_000_000_000))
    slowest_bps = min(cable.rate_bps for cable in topology.cables)
    assert pairs.flows / 2 * 64 * 8 / (short * 1e-9) < slowest_bps / 2
    assert 10_000_000_000 / 3000 <= long < 10_000_000_000 / 500


def test_the_event_is_between_two_probes_and_the_last_probe_after_the_horizon() -> None:
    pace = pace_of(1000, 50_500, 7_000)
    assert (pace.event_ns - pace.start_ns) % pace.interval_ns == 500
    assert pace.last_ns - pace.event_ns >= 50_500 - pace.interval_ns


def test_median_range_and_p99() -> None:
    few = Spread((3.0, 1.0, 2.0))
    assert (few.median, few.p99) == (2.0, None)
    many = Spread(tuple(float(n) for n in range(100, 0, -1)))
    assert many.p99 == pytest.approx(99.01)
    assert Spread((1.0, None, None)).median is None
    assert Spread((1.0, 2.0, None)).median == 2.0
    assert Spread((1.0,) * P99_FROM).p99 == 1.0


def test_a_fabric_without_other_paths_is_refused() -> None:
    one_spine = SMALL.replace("spines: 2", "spines: 1")
    assert "without any cable of a leaf to a switch, some hosts have no path" in refused(one_spine)
    one_switch = "topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}\n"
    assert "all hosts are at one switch" in refused(one_switch)
    ring = "topology: {kind: ring, switches: 4, hosts_per_switch: 1}\n"
    assert "no switch without hosts" in refused(ring, events=("switch-down",))
    setup = setup_of(ConvergenceRequest(spec_of(ring), planes=("static",)))
    assert Event.SWITCH_DOWN not in setup.events
    assert "no switch without hosts" in setup.left_out["switch-down"]


def test_unknown_names_and_tcp_are_refused_together() -> None:
    text = SMALL + "traffic: [{name: f, pattern: pair, from: h1, to: h3, size: 1KB, stack: tcp}]\n"
    found = refused(text, planes=("bpg", "static"), events=("link-dwon",)).splitlines()
    assert found[0] == "--planes: there is no control plane 'bpg' (did you mean 'bgp'?)"
    assert found[1] == "--events: there is no event 'link-dwon' (did you mean 'link-down'?)"
    assert "tcp" in found[2]


def test_planes_have_the_specs_fabric_and_their_own_routing() -> None:
    text = SMALL + (
        "switches: {routing: {control_plane: bgp}, "
        "nodes: {leaf1: {routing: {kind: flowlet, bgp: {asn: 65001}}}}}\n"
    )
    setup = setup_of(ConvergenceRequest(spec_of(text)))
    specs = {plane.name: spec for plane, spec in setup.planes.items()}
    assert list(specs) == list(PLANES)
    assert not setup.left_out
    kinds = {name: spec.switch("leaf1").routing.kind for name, spec in specs.items()}
    assert (kinds["bgp"], kinds["adaptive"]) == ("flowlet", "adaptive")
    bfd = specs["bgp-bfd"].switch("leaf1").routing.bgp
    assert bfd.asn == 65001
    assert bfd.bfd is not None
    assert bfd.bfd.interval_ms == 50
    assert specs["bgp-fast"].switch("spine1").routing.bgp.hold_ps == 3 * 10**12
    assert {specs[name].fabric for name in ("opensm", "opensm-adaptive")} == {"ib"}
