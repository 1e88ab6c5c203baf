"""`emu import containerlab`: nodes and links of a *.clab.yml as a spec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emu.cli.main import cli
from emu.errors import SpecError, UsageError
from emu.imports.containerlab import ImportedLab, import_containerlab
from emu.spec.model import Spec, spec_from_text

CLOS = """
name: clos
mgmt: {network: clab, ipv4-subnet: 172.100.100.0/24}
topology:
  kinds: {nokia_srlinux: {image: ghcr.io/nokia/srlinux}}
  groups: {servers: {kind: linux, image: alpine}}
  nodes:
    leaf-1: {kind: nokia_srlinux, type: ixr-d3}
    leaf-2: {kind: arista_ceos}
    spine1: {kind: sonic-vs}
    client1: {kind: linux, image: alpine}
    client2: {group: servers}
  links:
    - endpoints: ["leaf-1:e1-1", "client1:eth1"]
    - endpoints: ["leaf-2:eth1", "client2:eth1"]
    - endpoints: ["leaf-1:e1-49", "spine1:eth1"]
    - type: veth
      mtu: 9000
      endpoints: [{node: leaf-2, interface: eth49}, {node: spine1, interface: eth2}]
    - endpoints: ["leaf-2:eth50", "spine1:eth3"]
    - endpoints: ["leaf-2:eth51", "mgmt-net:eth9"]
    - {type: host, endpoint: {node: leaf-2, interface: eth52}, host-interface: veth0}
"""


def lab(folder: Path, text: str, **options: object) -> ImportedLab:
    path = folder / "lab.clab.yml"
    path.write_text(text)
    return import_containerlab(path, **options)  # type: ignore[arg-type]


def command(folder: Path, text: str, *words: str) -> Result:
    path = folder / "lab.clab.yml"
    path.write_text(text)
    return CliRunner().invoke(cli, ["import", "containerlab", str(path), *words])


def spec_of(folder: Path, text: str, *words: str) -> Spec:
    done = command(folder, text, *words)
    assert done.exit_code == 0, done.output
    return spec_from_text(done.stdout.encode(), source="lab.emu.yml")


def test_linux_nodes_are_hosts_and_others_switches(tmp_path: Path) -> None:
    """Also where a group gives the kind. Names lose the characters that emu's do not have."""
    topology = spec_of(tmp_path, CLOS).topology.build()
    assert list(topology.host) == ["client1", "client2"]
    assert list(topology.switch) == ["leaf1", "leaf2", "spine1"]
    assert set(topology.port_named) >= {"leaf1:client1", "leaf2:spine1", "leaf2:spine1#2"}
    assert len(topology.cables) == 5


def test_interfaces_keep_their_names(tmp_path: Path) -> None:
    devices = spec_of(tmp_path, CLOS).devices
    assert devices["leaf2"].name == "leaf-2"
    assert devices["leaf2"].ports == {"client2": "eth1", "spine1": "eth49", "spine1#2": "eth50"}
    assert devices["spine1"].ports == {"leaf1": "eth1", "leaf2": "eth2", "leaf2#2": "eth3"}


def test_management_and_links_out_of_the_lab_are_noted(tmp_path: Path) -> None:
    texts = {line.row.path: str(line) for line in lab(tmp_path, CLOS).report.lines}
    assert "ignored: management is outside of the fabric" in texts["mgmt"]
    assert "ignored: it leads out of the lab" in texts["links|5"]
    assert "a link of type host leads out of the lab" in texts["links|6"]
    assert "emu runs no containers" in texts["nodes|leaf-1|type"]
    assert "ignored" in texts["links|3|mtu"]


def test_all_links_have_the_rate_and_length_that_are_given(tmp_path: Path) -> None:
    topology = spec_of(tmp_path, CLOS, "--rate", "25Gbit", "--length", "10m").topology.build()
    assert {(own.rate_bps, own.delay_ps) for own in topology.cables} == {(25 * 10**9, 50_000)}


def test_an_imported_lab_runs(tmp_path: Path) -> None:
    spec = tmp_path / "lab.emu.yml"
    assert command(tmp_path, CLOS, "-o", str(spec)).exit_code == 0
    words = ["run", str(spec), "--clock", "virtual", "--quiet", "--json"]
    done = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "out")])
    assert [flow["completed"] for flow in json.loads(done.stdout)["flows"]] == [True, True]


ROUTER = """
topology:
  nodes: {frr: {kind: linux}, a: {kind: linux}, b: {kind: linux}}
  links:
    - endpoints: ["frr:eth1", "a:eth1"]
    - endpoints: ["frr:eth2", "b:eth1"]
"""
DUAL = """
topology:
  defaults: {kind: linux}
  nodes: {s1: {kind: bridge}, s2: {kind: bridge}, server: {}, other: {}}
  links:
    - endpoints: ["s1:eth1", "server:eth1"]
    - endpoints: ["s2:eth1", "server:eth2"]
    - endpoints: ["s1:eth2", "other:eth1"]
    - endpoints: ["s1:eth3", "s2:eth3"]
"""


def test_a_router_of_kind_linux_is_a_switch_if_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"lab\.clab\.yml:5:.*joins two hosts.*--switch"):
        lab(tmp_path, ROUTER)
    topology = spec_of(tmp_path, ROUTER, "--switch", "frr").topology.build()
    assert (list(topology.switch), list(topology.host)) == (["frr"], ["a", "b"])


def test_a_host_with_two_links_is_two_hosts(tmp_path: Path) -> None:
    result = lab(tmp_path, DUAL)
    assert result.data["topology"]["hosts"] == ["server", "h1", "other"]
    texts = {line.row.path: line.text for line in result.report.lines}
    assert "it has 2 links, and is a host for each" in texts["nodes|server"]
    assert result.data["devices"]["h1"] == {"name": "server", "ports": {"s2": "eth2"}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "lab.clab.yml:1:5: is not valid YAML"),
        ("name: x", "lab.clab.yml:1:1: topology: is missing; a topology has nodes and links"),
        ("topology: {nodes: {a: {kind: x}}}", "1:1: topology.links: must be a list"),
        (
            "topology: {nodes: {a: {image: x}}, links: [{endpoints: ['a:1', 'a:2']}]}",
            "topology.nodes.a: has no kind; give it one",
        ),
        (
            "topology: {nodes: {a: {kind: x}}, links: [{endpoints: ['a:1', 'a:2']}]}",
            "topology.links.0: joins a node to itself",
        ),
        (
            "topology: {nodes: {leaf1: {kind: x}}, links: [{endpoints: ['leaf1:1', 'leaf2:1']}]}",
            "topology.links.0.endpoints: there is no node 'leaf2' (did you mean 'leaf1'?)",
        ),
        (
            "topology: {nodes: {a: {kind: x}, b: {kind: x}}, links: [{endpoints: ['a:1', 'b:1']}, "
            "{endpoints: ['a:1', 'b:2']}]}",
            "topology.links.1: a:1 is in topology.links.0, too; an interface has one link",
        ),
        (
            "topology: {nodes: {a: {kind: x}}, links: [{endpoints: ['a:1']}]}",
            "topology.links.0.endpoints: are two ends",
        ),
        (
            "topology: {nodes: {a: {kind: x}}, links: [{endpoints: ['a', 'a:1']}]}",
            "topology.links.0.endpoints.0: is a node and its interface",
        ),
        ("topology: {nodes: {a: 5}, links: [x]}", "topology.nodes.a: must be a mapping"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        lab(tmp_path, text)
    assert any(expected in line for line in caught.value.findings), caught.value.findings


def test_an_unknown_switch_or_rate_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--switch: there is no node 'frrr'"):
        lab(tmp_path, ROUTER, switches=("frrr",))
    with pytest.raises(SpecError, match="fast"):
        lab(tmp_path, CLOS, rate="fast")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.clab\.yml: cannot be read"):
        import_containerlab(tmp_path / "none.clab.yml")
