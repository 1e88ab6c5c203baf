"""Inheritance: defaults -> role -> node, and variants. The more specific value wins, key by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import SpecError
from emu.spec.congestion_control.dcqcn import Dcqcn
from emu.spec.merge import overlay
from emu.spec.model import Pfc, Spec, load_spec, spec_from_json, spec_from_text
from emu.spec.switch import Curve

INCAST = Path(__file__).parents[2] / "topologies" / "incast.emu.yml"

LAYERS = """
topology: {kind: leaf-spine, spines: 1, leaves: 3, hosts_per_leaf: 1}
switches:
  buffer: 4MB
  latency: 500ns
  pfc: {xoff: 90KB, xon: 50KB}
  scheduling: {weights: {3: 10, 0: 5}}
  roles:
    leaf: {latency: 300ns, pfc: {xon: 40KB}, scheduling: {weights: {0: 7}}}
    spine: {pfc: off}
  nodes:
    leaf2: {latency: 200ns, pfc: {xoff: 80KB}}
    leaf3: {pfc: off}
    spine1: {pfc: {xoff: 70KB}}
hosts:
  nic: {mtu: 2048, dcqcn: {rai: 5Mbit}}
  nodes:
    h2: {nic: {dcqcn: {rhai: 50Mbit}}}
"""


def pfc_of(**keys: str) -> Pfc:
    """The Pfc model that these keys of a spec give."""
    return Pfc.model_validate(keys)


@pytest.fixture
def layers() -> Spec:
    return spec_from_text(LAYERS.encode(), source="layers.emu.yml")


@pytest.mark.parametrize(
    ("name", "latency_ps", "pfc"),
    [
        ("leaf1", 300_000, pfc_of(xoff="90KB", xon="40KB")),
        ("leaf2", 200_000, pfc_of(xoff="80KB", xon="40KB")),
        ("leaf3", 300_000, None),
        ("spine1", 500_000, pfc_of(xoff="70KB")),
    ],
)
def test_the_more_specific_layer_wins(
    layers: Spec, name: str, latency_ps: int, pfc: Pfc | None
) -> None:
    """Node keys override role keys, and role keys override defaults.

    `off` discards earlier layers.
    """
    for spec in (layers, spec_from_json(layers.to_json())):
        switch = spec.switch(name)
        assert (switch.latency_ps, switch.pfc, switch.buffer_bytes) == (latency_ps, pfc, 4_000_000)


def test_mappings_are_merged(layers: Spec) -> None:
    """A weight for one priority leaves the other priorities' weights unchanged."""
    assert layers.switch("leaf1").scheduling.weights == {3: 10, 0: 7}
    assert layers.switch("spine1").scheduling.weights == {3: 10, 0: 5}


def test_ports_and_queues_are_merged() -> None:
    """Keys of a role or a switch leave the other keys of all switches.

    `off` discards earlier layers.
    """
    text = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 1}
switches:
  pfc: {xoff: 90KB, xon: 50KB}
  ecn: {queues: {3: {kmin: 20KB, kmax: 30KB}, 0: off}}
  ports:
    spine1: {pfc: {xoff: 80KB}, ecn: {pmax: 40%}}
  roles:
    leaf: {ports: {spine1: {pfc: {xon: 40KB}}}}
  nodes:
    leaf1: {ports: {spine1: {pfc: {headroom: 30KB}}}, ecn: {queues: {3: {kmax: 25KB}}}}
    leaf2: {ports: {spine1: {pfc: off}}}
"""
    spec = spec_from_text(text.encode(), source="ports.emu.yml")
    named = spec.topology.build().port_named
    port = spec.port(named["leaf1:spine1"])
    assert port.pfc == pfc_of(xoff="80KB", xon="40KB", headroom="30KB")
    assert spec.port(named["leaf1:spine2"]).pfc == pfc_of(xoff="90KB", xon="50KB")
    assert spec.port(named["leaf2:spine1"]).pfc is None
    assert port.ecn is not None
    assert port.ecn.pmax == 0.4
    assert port.ecn.curve(3) == Curve.model_validate({"kmin": "20KB", "kmax": "25KB", "pmax": 0.4})
    assert port.ecn.curve(0) is None


def test_hosts_inherit_as_switches_do(layers: Spec) -> None:
    """One NIC differs in one parameter."""
    usual, other = (layers.host(name).nic for name in ("h1", "h2"))
    assert other.mtu == 2048
    assert other.parameters_of(Dcqcn).rai_bps == 5_000_000
    assert other.parameters_of(Dcqcn).rhai_bps == 50_000_000
    assert usual.parameters_of(Dcqcn).rhai_bps == 200_000_000


def test_an_unknown_switch_is_a_key_error(layers: Spec) -> None:
    """Callers take the names from the topology, so no nearest name is suggested."""
    with pytest.raises(KeyError):
        layers.switch("leaf9")


def test_the_incast_demo_has_five_variants() -> None:
    """Lossy, PFC alone, DCQCN, mistuned DCQCN and InfiniBand, all with the same seed."""
    variants = load_spec(INCAST).variants()
    told = {
        name: (
            spec.fabric,
            spec.switch("leaf1").pfc is not None,
            spec.switch("leaf1").ecn is not None,
            spec.host("h1").nic.cc,
        )
        for name, spec in variants.items()
    }
    assert told == {
        "roce-lossy": ("roce", False, False, "none"),
        "roce-pfc": ("roce", True, False, "none"),
        "roce-dcqcn": ("roce", True, True, "dcqcn-nvidia"),
        "roce-mistuned": ("roce", True, True, "dcqcn-nvidia"),
        "ib": ("ib", True, True, "none"),
    }
    assert {spec.seed for spec in variants.values()} == {7}


def test_a_variant_keeps_only_its_own_checks() -> None:
    """The base's checks hold for the base only: without PFC, no priority is lossless."""
    own = "compare.own={verify: [{lossless: {priority: 3}}]}"
    base = load_spec(INCAST, ["compare.none={}", own])
    assert len(base.verify) == 2
    assert base.variants()["none"].verify == ()
    assert len(base.variants()["own"].verify) == 1


def test_a_topology_of_another_kind_replaces_the_base() -> None:
    """The keys of one kind of topology have no meaning in another kind."""
    text = "compare.ring.topology={kind: ring, switches: 4, hosts_per_switch: 2}"
    ring = load_spec(INCAST, [text, "capture=[]"]).variants()["ring"]
    assert set(ring.topology.build().switch) == {"ring1", "ring2", "ring3", "ring4"}
    smaller = load_spec(INCAST, ["compare.one.topology.spines=1", "capture=[]"]).variants()["one"]
    assert len(smaller.topology.build().switches) == 3


def test_infiniband_variants_ignore_ethernet_keys() -> None:
    """`{fabric: ib}` is a valid variant of any spec, whatever the spec's PFC, ECN and markers."""
    ethernet_only = ["switches.ecn.marker=ebpf", "switches.pfc.headroom=400KB"]
    spec = load_spec(INCAST, [*ethernet_only, "switches.buffer=9MB"])
    assert spec.variants()["ib"].switch("leaf1").ecn == spec.switch("leaf1").ecn
    with pytest.raises(SpecError, match=r"^[^\n]* compare.ib.switches.ecn.marker: [^\n]*$"):
        load_spec(INCAST, ["compare.ib.switches.ecn.marker=ebpf"])


def test_overlay_leaves_its_arguments_unchanged() -> None:
    """The result of a merge is a new mapping."""
    base, changes = {"a": {"b": 1, "c": [1]}, "d": 2}, {"a": {"c": [2]}, "d": {"e": 3}}
    assert overlay(base, changes) == {"a": {"b": 1, "c": [2]}, "d": {"e": 3}}
    assert base == {"a": {"b": 1, "c": [1]}, "d": 2}
