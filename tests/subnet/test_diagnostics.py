"""InfiniBand's tools in a managed fabric, and a second OpenSM beside the first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from emu.errors import FabricError
from emu.ib_rates import parse_ib_rate
from emu.subnet.diagnostics import diagnose, tell_counters
from emu.subnet.manager import ManagedFabric
from emu.subnet.netfile import net_file
from emu.subnet.opensm import OpenSm
from emu.subnet.policy import Policy
from tests.support.lab_fabrics import clos
from topologies.graph import Builder, Port, Topology, Wire
from topologies.guids import host_guid, port_number, switch_guid
from topologies.text import ibnetdiscover

TOOLS = ("smpquery nodeinfo 1", "smpquery nodeinfo 99")
"""LID 1 exists, LID 99 does not."""


@pytest.fixture(scope="module")
def fabric() -> Topology:
    return clos(2)


@pytest.fixture(scope="module")
def managed(fabric: Topology, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedFabric]:
    with ManagedFabric(fabric, Policy(), tmp_path_factory.mktemp("managed")) as running:
        yield running


def output_of(managed: ManagedFabric, line: str) -> str:
    return diagnose(managed.simulator, "h2", line.split()).text


def test_ibnetdiscover_finds_exactly_the_topology(fabric: Topology, managed: ManagedFabric) -> None:
    """Every node by its name and GUID; every cable, in both directions, port by port."""
    said = output_of(managed, "ibnetdiscover")
    guids = {f"{switch_guid(switch):016x}": switch.name for switch in fabric.switches}
    guids |= {f"{host_guid(host):016x}": host.name for host in fabric.hosts}
    nodes = re.findall(r'^(?:Switch|Ca)\t\d+ "[SH]-(\w+)"\s+# "(\w+)"(.*(?:\n\[.*)*)', said, re.M)
    assert {guid: name for guid, name, _ in nodes} == guids
    found = {
        ((name, int(port)), (guids[far], int(far_port)))
        for _, name, ports in nodes
        for port, far, far_port in re.findall(r'^\[(\d+)\].*?"[SH]-(\w+)"\[(\d+)\]', ports, re.M)
    }
    ends = {(place(fabric, port), place(fabric, far)) for port, far in fabric.peer.items()}
    assert found == ends


def place(fabric: Topology, port: Port) -> tuple[str, int]:
    return port.node, port_number(fabric, port)


def test_output_of_ibnetdiscover_reads_as_the_same_fabric(
    fabric: Topology, managed: ManagedFabric
) -> None:
    """Every node by name, every cable with its rate."""
    net = ibnetdiscover.read(output_of(managed, "ibnetdiscover"), "ibnetdiscover")
    assert sorted(net.switches) == sorted(fabric.switch)
    assert sorted(net.hosts) == sorted(fabric.host)
    assert net.origin == {}
    meant = Counter(frozenset((cable.a.node, cable.b.node)) for cable in fabric.cables)
    assert Counter(frozenset((link.a, link.b)) for link in net.links) == meant
    assert {link.rate for link in net.links} == {"4x EDR"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("1x SDR", "1xSDR"),
        ("4x DDR", "4xDDR"),
        ("12x QDR", "12xQDR"),
        ("4x FDR", "4xFDR"),
        ("1x EDR", "1xEDR"),
        ("4x EDR", "4xEDR"),
        ("8x EDR", "8xEDR"),
        ("12x EDR", "12xEDR"),
        ("1x HDR", "1xHDR"),
        ("4x FDR10", "4xQDR"),
        ("4x NDR", "4xHDR"),
    ],
)
def test_links_are_reported_with_width_and_speed(spec: str, expected: str, tmp_path: Path) -> None:
    """ibsim has no words for FDR10 and NDR. The net file and the output of ibnetdiscover read as
    the same links."""
    rate_bps = parse_ib_rate(spec)
    assert rate_bps is not None
    builder = Builder()
    leaf = builder.add_switch("leaf1", "leaf")
    for _ in range(2):
        builder.add_cable(leaf, builder.add_host(), Wire(rate_bps, 0))
    topology = builder.topology()
    with ManagedFabric(topology, Policy(), tmp_path) as managed:
        managed.subnet()
        said = output_of(managed, "ibnetdiscover")
    assert re.findall(r'^\[.*" lid \d+ (\S+)$', said, re.M) == [expected] * 4
    for text in (said, net_file(topology)):
        links = ibnetdiscover.read(text, "text").links
        assert [link.rate.replace(" ", "") for link in links] == [expected] * 2


def test_tool_returns_its_own_exit_code(managed: ManagedFabric) -> None:
    codes = [diagnose(managed.simulator, "leaf1", words.split()).code for words in TOOLS]
    assert (codes[0], codes[1] != 0) == (0, True)


def test_ibroute_shows_the_tables_in_force(managed: ManagedFabric) -> None:
    subnet = managed.subnet()
    said = output_of(managed, f"ibroute {subnet.lids['leaf1']}")
    rows = {int(lid, 16): int(port) for lid, port in re.findall(r"^(0x\w{4}) (\d{3})", said, re.M)}
    assert rows == subnet.lfts["leaf1"]


def test_ibtracert_follows_the_path_of_the_packets(
    fabric: Topology, managed: ManagedFabric
) -> None:
    subnet = managed.subnet()
    said = output_of(managed, f"ibtracert {subnet.lids['h1']} {subnet.lids['h4']}")
    nodes = [port.node for port in subnet.path(fabric, "h1", "h4")]
    names = re.findall(r'lid \d+-\d+ "(\w+)"', said)
    assert [node for node in names if node in fabric.switch] == nodes[1:]


def test_perfquery_and_ibqueryerrors_show_the_counters(
    fabric: Topology, managed: ManagedFabric
) -> None:
    """The emulator's own counters, by port; values beyond 32 bits saturate there, but not in the
    extended counters."""
    counted = {
        "PortXmitData": 12345,
        "PortXmitWait": 678,
        "SymbolErrorCounter": 9,
        "PortRcvData": 2**32 + 5,
        "PortXmitPkts": 2**40,
        "PortRcvPkts": 77,
    }
    tell_counters(managed.simulator, fabric, {"leaf1:h1": counted}, {})
    lids = managed.subnet().lids
    said = numbers(output_of(managed, f"perfquery {lids['leaf1']} 1"))
    large = {"PortRcvData": 2**32 - 1, "PortXmitPkts": 2**32 - 1}
    assert said.items() >= (counted | large).items()
    extended = numbers(output_of(managed, f"perfquery -x {lids['leaf1']} 1"))
    assert (
        extended.items()
        >= {
            "PortXmitData": 12345,
            "PortRcvData": 2**32 + 5,
            "PortXmitPkts": 2**40,
            "PortRcvPkts": 77,
            "PortUnicastXmitPkts": 2**40,
            "PortUnicastRcvPkts": 77,
        }.items()
    )
    assert "SymbolErrorCounter == 9" in output_of(managed, "ibqueryerrors")


def test_host_port_mirrors_the_counters_of_its_switch_port(
    fabric: Topology, managed: ManagedFabric
) -> None:
    """Plus the tools' own packets, of 72 words each."""
    counted = {"PortXmitData": 10**6, "PortRcvData": 2**33, "PortXmitPkts": 5, "PortRcvPkts": 2**34}
    tell_counters(managed.simulator, fabric, {"leaf1:h1": counted}, {"h1": 4321})
    lid = managed.subnet().lids["h1"]
    extended = numbers(output_of(managed, f"perfquery -x {lid} 1"))
    own = extended["PortXmitPkts"] - 2**34
    assert 0 <= own < 20
    assert extended["PortXmitData"] == 2**33 + 72 * own
    assert 0 <= extended["PortRcvPkts"] - 5 < 20
    assert extended["PortRcvData"] == 10**6 + 72 * (extended["PortRcvPkts"] - 5)
    said = numbers(output_of(managed, f"perfquery {lid} 1"))
    assert said["PortXmitWait"] == 4321
    assert said["PortXmitData"] == said["PortXmitPkts"] == 2**32 - 1
    silent = numbers(output_of(managed, f"perfquery {managed.subnet().lids['h3']} 1"))
    assert silent["PortXmitWait"] == 0
    assert silent["PortXmitData"] < 20 * 72


def test_counters_are_in_force_when_tell_counters_returns(
    fabric: Topology, managed: ManagedFabric
) -> None:
    """The console is slower than a query: even the last of many values is there for the next
    one."""
    for value in (1, 2):
        ports = {name: {"PortXmitWait": value} for name in fabric.port_named}
        for _ in range(20):
            tell_counters(managed.simulator, fabric, ports, {"h4": value})
        log = (managed.simulator.workdir / "ibsim.log").read_text()
        assert log.count(f"h4[1] PortCounters.PortXmitWait has been set to {value}\n") == 20


def numbers(said: str) -> dict[str, int]:
    """perfquery's values by counter."""
    return {name: int(value) for name, value in re.findall(r"^(\w+):\.*(\d+)$", said, re.M)}


def test_second_opensm_takes_over_when_the_first_dies(fabric: Topology, tmp_path: Path) -> None:
    """It is a standby until then, and its tables are those that were in force."""
    with ManagedFabric(fabric, Policy(), tmp_path / "first") as managed:
        before = managed.subnet()
        folder = tmp_path / "second"
        environment = managed.simulator.environment("h3", folder)
        with OpenSm(fabric, Policy(), environment, folder, priority=1) as second:
            assert second.sweeps == 0
            managed.opensm.kill()
            second.wait_for_sweep(1)
            lfts = second.dump("opensm-lfts.dump")
        assert lfts.count("Unicast lids") == len(before.lfts)
        with pytest.raises(FabricError, match="could not bring the subnet up"):
            managed.opensm.wait_for_sweep(99)
