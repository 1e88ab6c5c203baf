"""`emu explain`: the topics that it finds, its suggestions, and the values in force in a spec."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.explain import command
from emu.errors import ExitCode, UsageError
from emu.explain import keys
from emu.explain.in_force import OpenSpec, Value
from emu.spec.model import load_spec
from emu.spec.notes import written
from emu.units import write_size

ROOT = Path(__file__).parents[2]
INCAST = str(ROOT / "topologies" / "incast.emu.yml")


def told(*words: str) -> str:
    """The output of `emu explain` with single blanks."""
    result = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert result.exit_code == 0
    return " ".join(result.stdout.split())


def refusal(*words: str) -> str:
    result = CliRunner().invoke(command, list(words))
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    return str(result.exception)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("switches.pfc.xon_offset", "Unit: bytes. Values: e.g. 96KB"),
        ("switches.pfc.xon_offset", "Default: 4608B: SONiC's value for"),
        ("switches.watchdog.poll", "Source: SONiC, sonic-utilities"),
        ("switches.pfc", "headroom Buffer reserved per port and priority"),
        ("switches.nodes.leaf1.pfc.priorities", "Lossless priorities"),
        ("topology.spines", "topology.leaf-spine.spines, topology.rail.spines"),
        ("traffic.incast.op", "Default: write"),
        ("traffic.0.share", "traffic.0.hot-spot.share"),
        ("kmin", "switches.ecn.kmin Depth up to which nothing is marked."),
        ("pause_response", "pause frame's arrival"),
        ("rx_prio3_pause_duration", "How long pauses kept priority 3 of this port from sending"),
        ("counter PortXmitWait_VL2", "PortXmitWait of lane 2 alone"),
        ("counter tx_packets", "RDMA packets that the NIC sent"),
        ("totals.drops_lossless", "A healthy lossless fabric has 0"),
        ("preset sonic", "classes.other_dscp 1"),
        ("sonic", "Write: switches: {preset: sonic}."),
        ("check lossless", "verify.lossless"),
        ("fault pause-storm", "faults.pause-storm"),
        ("diagnosis pause storm", "Cure: The watchdog takes the port out of PFC"),
        ("pause-storm", "faults.pause-storm"),
        ("field flows.end_ns", "summary.json: flows[].end_ns When the last byte"),
        ("counter", "rx_prioN_pause_duration"),
        ("check", "fct_slowdown"),
        ("compare.ib.fabric", "ib: InfiniBand"),
        ("", "traffic The workload: sources, destinations and sizes of messages."),
    ],
)
def test_each_kind_of_topic_is_explained(words: str, expected: str) -> None:
    """A topic is found by its name, with the entries below a section."""
    assert expected in told(*words.split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("switches.pfc.xof", "did you mean 'switches.pfc.xoff'?"),
        ("switches.pcf.xoff", "did you mean 'switches.pfc.xoff'?"),
        ("topology.spine", "did you mean 'topology.spines'?"),
        ("switchs", "did you mean 'switches'?"),
        ("PFC", "did you mean 'pfc'?"),
        ("ecn.kmin", "did you mean 'switches.ecn.kmin'?"),
        ("preset SONiC", "did you mean 'sonic'?"),
        ("preset sonik", "did you mean 'sonic'?"),
        ("counter rx_prioN_pauze", "did you mean 'rx_prioN_pause'?"),
        ("diagnosis storm", "`emu explain diagnosis` lists what there is"),
        ("counter rx_prio8_pause", "did you mean 'rx_prioN_pause'?"),
        ("xyzzy-42", "`emu explain` lists what there is"),
    ],
)
def test_unknown_names_are_refused(words: str, expected: str) -> None:
    """The error suggests the nearest name."""
    assert expected in refusal(*words.split())


def test_json_is_one_document() -> None:
    """The document holds topics and the values in force."""
    result = CliRunner().invoke(command, ["switches.ecn.pmax", "--spec", INCAST, "--json"])
    document = json.loads(result.stdout)
    assert document["schema"] == "emu.explain/1"
    assert document["topics"][0]["name"] == "switches.ecn.pmax"
    assert document["in_force"][0]["value"] == "0.2"


SPEC = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches:
  buffer: 64MB
  pfc: on
  ecn: {kmin: 200KB}
  roles:
    leaf: {preset: nvidia, alpha: 2}
  nodes:
    leaf2: {preset: none, ecn: off}
    spine1: {pfc: {xoff: 50KB, xon: 20KB}, ports: {leaf1: {ecn: {pmax: 50%}}}}
hosts:
  nic: {cc: dcqcn}
  nodes: {h1: {nic: {cc: none}}}
traffic:
  - {name: load, pattern: incast, from: h2-h4, to: h1, size: 1MB}
compare:
  small: {switches: {buffer: 32MB}}
"""


PLAIN = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}
switches: {pfc: on, ecn: on}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, size: 1MB}]
"""


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "layers.emu.yml"
    path.write_text(SPEC)
    return path


def in_force(path: Path, key: str, *settings: str, variant: str | None = None) -> list[Value]:
    return OpenSpec(path, settings, variant).values([key])


def test_a_preset_of_a_role_names_the_role(spec_file: Path) -> None:
    """A preset of a role overrides the keys of all switches, and a key
    beside the preset overrides it."""
    values = in_force(spec_file, "switches.ecn.kmax")
    by_where = {value.where: value for value in values}
    assert by_where["leaf1"].value == "1500KB"
    assert by_where["leaf1"].origin.startswith("preset nvidia, role leaf (")
    assert "layers.emu.yml:8:" in by_where["leaf1"].origin


def test_values_agree_with_their_origins(spec_file: Path) -> None:
    """A value with the origin `default` is the schema's default."""
    for section in ("switches", "hosts.nic"):
        for value in in_force(spec_file, section):
            (key,) = keys.matching(tuple(value.key.split(".")))
            default = key.node.get("default")
            if default == "auto" and value.origin == "default":
                continue  # the value that auto stands for
            if value.origin == "default" and default is not None:
                assert value.value == written(default)
            elif default is None and value.origin == "default":
                assert value.value in ("not given", "{}", "[]")


SHIPPED = [p for p in sorted(ROOT.glob("topologies/*.emu.yml")) if "1024" not in p.stem]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_value_of_shipped_specs_has_an_origin(path: Path) -> None:
    """The test looks at all sections."""
    for section in ("topology", "switches", "hosts.nic", "subnet", "traffic", "seed"):
        values = in_force(path, section)
        assert values
        assert all(value.origin for value in values)


def test_a_disabled_section_names_where_it_is_off(spec_file: Path) -> None:
    """The keys of a disabled section have no value."""
    off = [v for v in in_force(spec_file, "switches.ecn.kmin") if v.value == "off"]
    assert [(v.key, v.where) for v in off] == [("switches.ecn", "leaf2")]
    assert off[0].origin.startswith("node leaf2 (")


def test_a_port_that_differs_is_named(spec_file: Path) -> None:
    """A value that all ports of a switch share is given for the switch."""
    (kmin,) = [v for v in in_force(spec_file, "switches.ecn.kmin") if v.value == "200KB"]
    assert kmin.where == "spine1, spine2"
    values = {v.where: v for v in in_force(spec_file, "switches.ecn.pmax")}
    assert values["spine1:leaf1"].value == "0.5"
    assert values["spine1:leaf1"].origin.startswith("node spine1, port to leaf1 (")


def test_hosts_with_equal_values_are_grouped(spec_file: Path) -> None:
    """h1 differs from the other hosts."""
    assert [(v.where, v.value) for v in in_force(spec_file, "hosts.nic.cc")] == [
        ("h1", "none"),
        ("h2, h3, h4", "dcqcn"),
    ]


def test_values_of_one_switch_role_or_host(spec_file: Path) -> None:
    """The values in force there are shown, whichever layer gives them."""
    (leaf1,) = in_force(spec_file, "switches.nodes.leaf1.ecn.kmin")
    assert (leaf1.where, leaf1.value) == ("leaf1", "150KB")
    (spines,) = in_force(spec_file, "switches.roles.spine.buffer")
    assert (spines.where, spines.value) == ("spine1, spine2", "64MB")
    (leaves,) = in_force(spec_file, "switches.roles.tier1.alpha", "switches.roles.tier1.alpha=4")
    assert (leaves.where, leaves.value) == ("leaf1, leaf2", "2.0")
    (above,) = in_force(spec_file, "switches.roles.spine.alpha", "switches.roles.tier2.alpha=4")
    assert above.value == "4.0"
    assert above.origin.startswith("role tier2 (")
    (h2,) = in_force(spec_file, "hosts.nodes.h2.nic.cc")
    assert (h2.where, h2.value) == ("h2", "dcqcn")
    with pytest.raises(UsageError, match=r"has no switches\.nodes\.leaf7"):
        in_force(spec_file, "switches.nodes.leaf7.buffer")


def test_automatic_headroom_is_derived(spec_file: Path) -> None:
    """The origin names the link's rate and delay."""
    (value,) = in_force(spec_file, "switches.pfc.headroom", "switches.nodes.spine1.ports={}")
    assert value.value.startswith("auto: ")
    assert value.origin.startswith("derived from 100Gbit, a cable of 25ns")


def test_thresholds_not_given_are_derived(tmp_path: Path) -> None:
    """The values are those of the switches; the origin names inputs and reason."""
    path = tmp_path / "plain.emu.yml"
    path.write_text(PLAIN)
    spec = load_spec(path)
    port = spec.port(spec.topology.build().port_named["leaf1:h1"])
    assert port.pfc is not None
    assert port.ecn is not None
    values = {
        key: next(v for v in in_force(path, f"switches.{key}") if v.where != "spine1")
        for key in ("ecn.kmin", "ecn.kmax", "pfc.xoff", "latency")
    }
    assert values["ecn.kmin"].value == write_size(port.ecn.kmin_bytes)
    assert values["ecn.kmax"].value == write_size(port.ecn.kmax_bytes)
    assert values["pfc.xoff"].value == "alpha 1"
    assert values["latency"].value == "600ns"
    for key in ("ecn.kmin", "ecn.kmax"):
        assert values[key].origin.startswith("derived from rate, cable, MTU and buffer: ")
    assert values["pfc.xoff"].origin.startswith("derived from buffer and headroom: ")
    assert values["latency"].origin.startswith("derived from fabric: ")
    (xon,) = in_force(path, "switches.pfc.xon", "switches.pfc.xoff=96KB")
    assert (xon.value, xon.origin) == ("auto: 64KB", "derived from xoff: two thirds of xoff")


def test_given_thresholds_are_not_called_derived(spec_file: Path) -> None:
    """The values come from the file or from a preset."""
    given = [
        value
        for value in in_force(spec_file, "switches.ecn.kmin")
        if value.where == "leaf1" or value.value == "200KB"
    ]
    assert given
    assert not any("derived" in value.origin for value in given)


def test_dscps_of_a_preset_are_derived(tmp_path: Path) -> None:
    """Hosts without DSCPs use those of their switch's preset."""
    path = tmp_path / "plain.emu.yml"
    path.write_text(PLAIN)
    (value,) = in_force(path, "hosts.nic.dscp", "switches.preset=sonic")
    assert (value.where, value.value) == ("all hosts", "3")
    assert value.origin.startswith("derived from preset sonic: ")
    (value,) = in_force(path, "hosts.nic.dscp", "switches.preset=sonic", "hosts.nic.dscp=4")
    assert value.value == "4"
    assert "derived" not in value.origin


@pytest.mark.parametrize(("fabric", "way"), [("roce", "store-and-forward"), ("ib", "cut-through")])
def test_automatic_switching_is_derived(spec_file: Path, fabric: str, way: str) -> None:
    """The derived value is the one that the switches of the merged spec use."""
    (value,) = in_force(spec_file, "switches.switching", f"fabric={fabric}")
    assert value.value == f"auto: {way}"
    assert value.origin == f"derived from fabric: the default of fabric {fabric}"
    spec = load_spec(spec_file, [f"fabric={fabric}"])
    assert spec.cuts_through("leaf1") == (way == "cut-through")


def test_a_variant_has_its_own_values(spec_file: Path) -> None:
    """Their origin is a line of `compare:`; other values come from the base."""
    values = {v.where: v for v in in_force(spec_file, "switches.buffer", variant="small")}
    assert {v.value for v in values.values()} == {"32MB"}
    assert any(":18:" in v.origin for v in values.values())
    with pytest.raises(UsageError, match="did you mean 'small'"):
        in_force(spec_file, "switches.buffer", variant="smalll")


def test_traffic_is_found_by_name_pattern_or_number(spec_file: Path) -> None:
    """`--set` uses the same paths."""
    for name in ("load", "incast", "0"):
        (value,) = in_force(spec_file, f"traffic.{name}.size")
        assert (value.key, value.value) == ("traffic.0.size", "1MB")


def test_a_setting_is_the_origin_of_its_value(spec_file: Path) -> None:
    """The origin is `--set` and not a line of the file."""
    (value,) = in_force(spec_file, "seed", "seed=9")
    assert (value.value, value.origin) == ("9", "--set seed")


def test_a_counter_has_no_value_in_a_spec() -> None:
    """`--spec` with a counter is an error."""
    assert "is not a key of a spec" in refusal("rx_prio3_pause", "--spec", INCAST)
    assert "needs --spec FILE" in refusal("seed", "--variant", "ib")


@pytest.mark.parametrize("verb", ["explain", "init", "counters"])
def test_verbs_import_no_heavy_library(verb: str) -> None:
    """Heavy libraries are imported only when a verb runs."""
    heavy = "{'numpy', 'pydantic', 'networkx', 'scapy', 'rich'}"
    code = f"import sys, emu.cli.{verb}; print(sorted({heavy} & sys.modules.keys()))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "[]\n"
