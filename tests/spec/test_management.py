"""The `management:` section: its words, its defaults, and what it refuses."""

from __future__ import annotations

import pytest

from emu.errors import SpecError
from emu.spec.management import Cell
from emu.spec.model import Spec, spec_from_json, spec_from_text

FABRIC = "topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 1}\n"
NODES = ("h1", "h2", "spine1", "leaf1", "leaf2")


def spec(management: str, fabric: str = FABRIC) -> Spec:
    text = f"{fabric}management: {management}\n"
    return spec_from_text(text.encode(), source="test.emu.yml")


def refusal(management: str, fabric: str = FABRIC) -> str:
    with pytest.raises(SpecError) as refused:
        spec(management, fabric)
    return str(refused.value)


def test_it_is_off_by_default() -> None:
    assert spec_from_text(FABRIC.encode(), source="test.emu.yml").management is None
    assert spec("off").management is None


def test_on_lets_the_collector_read_and_nodes_report() -> None:
    own = spec("on").management
    assert own is not None
    cells = own.cells(NODES)
    assert {cell.service for cell in cells if cell.source == "mgmt"} == {
        "icmp",
        "tcp/22",
        "tcp/9100",
    }
    assert {cell.service for cell in cells if cell.target == "mgmt"} == {"icmp", "udp/514"}
    assert all("mgmt" in (cell.source, cell.target) for cell in cells)
    assert len(cells) == 5 * 5


def test_given_cells_replace_the_defaults() -> None:
    """But not those of the exporter; ranges and lists are as for hosts."""
    own = spec("{allow: [{from: [h1-h2, leaf1], to: mgmt, service: udp/162}]}").management
    assert own is not None
    of_exporter = {Cell("mgmt", node, "tcp/9100") for node in NODES}
    given = {Cell(node, "mgmt", "udp/162") for node in ("h1", "h2", "leaf1")}
    assert own.cells(NODES) == of_exporter | given


def test_it_survives_the_way_to_the_lab() -> None:
    for words in ("on", "off", "{exporter: off, firewall: off}", "{exporter: {port: 9101}}"):
        whole = spec(words)
        assert spec_from_json(whole.to_json()).management == whole.management


def test_misuse_bad_management_is_refused() -> None:
    assert "tcp/22 or udp/161" in refusal("{allow: [{from: mgmt, to: all, service: ssh}]}")
    assert "1 to 65535" in refusal("{allow: [{from: mgmt, to: all, service: tcp/70000}]}")
    said = refusal("{allow: [{from: h9, to: mgmt, service: icmp}]}")
    assert "management.allow.0.from" in said
    assert "no host or switch 'h9'" in said
    assert "did you mean 'firewall'" in refusal("{firewal: off}")
    assert "65535" in refusal("{exporter: {port: 70000}}")


def test_a_bridge_has_too_few_ports_for_a_large_fabric() -> None:
    large = "topology: {kind: leaf-spine, spines: 8, leaves: 32, hosts_per_leaf: 32}\n"
    assert "1,064 hosts and switches" in refusal("on", large)
    assert spec("off", large).management is None


def test_no_node_may_have_the_collectors_name() -> None:
    graph = (
        "topology: {kind: graph, hosts: [mgmt, h2], switches: [s1], "
        "links: [{between: [mgmt, s1]}, {between: [h2, s1]}]}\n"
    )
    assert "no host or switch may have that name" in refusal("on", graph)
