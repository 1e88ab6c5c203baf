"""Nothing passes between the management network and the fabric, and a mistake is found."""

from __future__ import annotations

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.exact_lab import EXACT, emu, finish_traffic, refused
from tests.support.managed_lab import (
    NODES,
    SPEC,
    fabric_counters,
    in_lab,
    link_counters,
    management_counters,
    python,
    reachability,
    reached_cells,
    said,
    staying,
    wrong_cells,
)
from tests.support.needs import need
from tests.support.user import User
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)
WITHOUT_FIREWALL = SPEC.replace("management: on", "management: {firewall: off}")
ON_INFINIBAND = """
name: managed
fabric: ib
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 1}
management: on
"""
AGENTS = {f"{node}-mgmt0" for node in NODES}

ATTACKS = """
import socket
PFC = bytes.fromhex("8808" "0101" "00ff") + b"\\xff" * 16
PAUSE = bytes.fromhex("8808" "0001" "ffff")
LLDP = bytes.fromhex("88cc" "0207" "04" "0200000000ff" "0000")
ARP = bytes.fromhex("0806" "0001" "0800" "0604" "0001" "0200ffffff01" "ac10ff01" "000000000000")
FRAMES = [
    ("ffffffffffff", b"\\x88\\xb5broadcast"),
    ("ffffffffffff", ARP + bytes([172, 16, 0, 1])),
    ("01005e000001", b"\\x88\\xb5multicast"),
    ("0180c200000e", LLDP),
    ("0180c2000001", PFC),
    ("0180c2000001", PAUSE),
    ("0200deadbeef", b"\\x88\\xb5unknown unicast"),
]
for _, name in socket.if_nameindex():
    if name == "lo":
        continue
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    line.bind((name, 0))
    for to, rest in FRAMES:
        line.send((bytes.fromhex(to) + bytes.fromhex("0200ffffff01") + rest).ljust(60, b"\\0"))
print(len(FRAMES))
"""


@pytest.fixture
def me(myself: User) -> User:
    need("nftables")
    return at_home(myself)


@pytest.fixture
def anybody(user: User) -> User:
    need("nftables")
    return at_home(user)


def test_only_what_the_spec_allows_is_reached(anybody: User) -> None:
    """M1, M2, M10: every place to every address, by every service, and no interface joins both."""
    with lab_up(anybody, SPEC, *EXACT):
        measured = reachability(anybody)
    assert (wrong_cells(measured), measured["joints"]) == (set(), [])
    expected = {("mgmt", agent, own) for agent in AGENTS for own in ("icmp", "tcp/22", "tcp/9100")}
    expected |= {(agent, "mgmt", own) for agent in AGENTS for own in ("icmp", "udp/514")}
    assert reached_cells(measured) == expected
    assert {"h1", "switches", "cables"} <= {cell["source"] for cell in measured["cells"]}


def test_hosts_reach_each_other_on_the_fabric_alone(me: User) -> None:
    with lab_up(me, SPEC, "--set", "slowdown=1000"):
        measured = reachability(me, "--fabric", "--wait", "3")
    assert wrong_cells(measured) == set()
    assert ("h1", "h2", "tcp/22") in reached_cells(measured)


def test_infiniband_is_as_separate(me: User) -> None:
    with lab_up(me, ON_INFINIBAND, *EXACT):
        measured = reachability(me)
    assert (wrong_cells(measured), measured["joints"]) == (set(), [])


def test_one_allowed_cell_less_closes_that_cell_alone(me: User) -> None:
    """M10, by mutation: each rule opens its own cell and no other."""
    allow = [("mgmt", "all", "icmp"), ("mgmt", "leaf1", "tcp/22"), ("h1", "h2", "udp/161")]
    entries = [f"{{from: {a}, to: {b}, service: {c}}}" for a, b, c in allow]

    def reached(*wanted: str) -> set[tuple[str, str, str]]:
        own = SPEC.replace("management: on", f"management: {{allow: [{', '.join(wanted)}]}}")
        with lab_up(me, own, *EXACT):
            measured = reachability(me)
        assert wrong_cells(measured) == set()
        return reached_cells(measured)

    everything = reached(*entries)
    assert everything - reached(*entries[:2]) == {("h1-mgmt0", "h2-mgmt0", "udp/161")}
    assert everything - reached(entries[0], entries[2]) == {("mgmt", "leaf1-mgmt0", "tcp/22")}


HOSTILE = (
    "ip route add 172.16.0.0/16 dev h1-eth0",
    "ip address add 172.16.255.1/32 dev h1-eth0",
    "ip address add 172.16.128.2/32 dev lo",
    *(f"ip neighbour replace 172.16.0.{n} lladdr 02:00:0a:00:00:02 dev h1-eth0" for n in (1, 2)),
    "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.arp_ignore=0",
)


def test_hostile_routes_and_addresses_open_nothing(me: User) -> None:
    """M3: Linux answers for an address on any interface of its namespace (the weak host model)."""
    with lab_up(me, SPEC, "--set", "slowdown=1000"):
        for line in HOSTILE:
            said(me, "h1", "sh", "-c", line)
        said(me, "h2", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        measured = reachability(me)
        other = in_lab(me, "h1", "ping", "-c", "1", "-W", "1", "-I", "172.16.255.1", "172.16.0.2")
    assert (wrong_cells(measured), other.code) == (set(), 1)


def test_an_agent_cannot_pretend_to_be_the_collector(me: User) -> None:
    """M3, on the management network itself: its switch knows which address is at which port."""
    spoof = (
        "import socket\n"
        "line = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)\n"
        "head = bytes.fromhex('4500001c0000000040010000ac10ff01ac100002')\n"
        "for _ in range(3):\n"
        "    line.sendto(head + bytes.fromhex('0800f7ff00000000'), ('172.16.0.2', 0))\n"
    )
    open_to_h1 = "management: {allow: [{from: h1, to: h2, service: icmp}]}"
    with lab_up(me, SPEC.replace("management: on", open_to_h1), *EXACT):
        said(me, "h1", "ping", "-c", "1", "h2", management=True)
        before = link_counters(me, "h2", management=True)["mgmt0"]["rx"]["packets"]
        python(me, "h1", spoof, management=True)
        after = link_counters(me, "h2", management=True)["mgmt0"]["rx"]["packets"]
    assert after == before


def test_frames_stay_on_their_side(me: User) -> None:
    """M4: broadcast, multicast, LLDP, PFC, 802.3x and unknown unicast, either way."""
    with lab_up(me, SPEC, *EXACT):
        before = management_counters(me)
        python(me, "h1", ATTACKS)
        assert management_counters(me) == before
        fabric, hosts = fabric_counters(me), link_counters(me, "h1")
        for node in ("mgmt", "mgmt_switch"):
            python(me, node, ATTACKS)
        python(me, "h1", ATTACKS, management=True)
        assert (fabric_counters(me), link_counters(me, "h1")) == (fabric, hosts)
        assert management_counters(me) != before


def test_counters_move_on_their_side_alone(me: User) -> None:
    """M7: the fabric at full load moves no counter of the management network, and the reverse."""
    with lab_up(me, SPEC, *EXACT):
        before = management_counters(me)
        emu(me, "traffic", "start")
        finish_traffic(me)
        assert management_counters(me) == before
        fabric = fabric_counters(me)
        for node in NODES:
            said(me, "mgmt", "ping", "-q", "-f", "-c", "200", node)
        assert management_counters(me) != before
        assert fabric_counters(me) == fabric


def test_listeners_are_on_the_management_network_alone(me: User) -> None:
    """M5, M6: an exporter's socket has its agent's address; no fabric namespace has a route."""
    with lab_up(me, SPEC, *EXACT):
        listening = said(me, "leaf1", "ss", "-Hltn", management=True).split()
        assert listening[3] == "172.16.128.2:9100"
        assert "9100" not in said(me, "h1", "ss", "-Hltn")
        for node in ("h1", "leaf1"):
            assert "172.16" not in said(me, node, "ip", "route")


def test_each_network_works_without_the_other(me: User) -> None:
    """M9: without its switch the fabric's traffic runs on; without a cable agents still answer."""
    with lab_up(me, SPEC, *EXACT):
        emu(me, "fault", "set", "link-down: {cable: leaf1:spine1}")
        metrics = said(me, "mgmt", "curl", "-s", "http://leaf1:9100/metrics")
        assert 'emu_port_up{node="leaf1",port="leaf1:spine1"} 0.0' in metrics
        assert 'emu_port_up{node="leaf1",port="leaf1:h1"} 1.0' in metrics
        emu(me, "fault", "clear", "link-down-1")
        said(me, "mgmt_switch", "ip", "link", "set", "mgmt_switch", "down")
        assert in_lab(me, "mgmt", "ping", "-c", "1", "-W", "1", "leaf1").code == 1
        emu(me, "traffic", "start")
        assert all(flow["completed"] for flow in finish_traffic(me))


def join_by_a_bridge(user: User) -> None:
    """The mistake: a host bridges its fabric interface with a port of the management switch."""
    with staying(user, "mgmt_switch") as switch:
        line = f"ip link add bad type veth peer name bad netns {switch}"
        said(user, "h1", "sh", "-c", line)
    said(user, "mgmt_switch", "ip", "link", "set", "bad", "master", "mgmt_switch", "up")
    for line in ("add joint type bridge", "set bad master joint up", "set joint up"):
        said(user, "h1", "ip", "link", *line.split())
    said(user, "h1", "ip", "link", "set", "h1-eth0", "master", "joint")


def test_a_bridge_between_the_networks_is_found(me: User) -> None:
    """M11: the inventory names both ends, and the matrix has cells that must not be."""
    with lab_up(me, WITHOUT_FIREWALL, *EXACT):
        assert reachability(me)["as_allowed"]
        join_by_a_bridge(me)
        measured = reachability(me)
    assert measured["joints"] == [
        "bad of h1 (fabric) is joined to mgmt_switch (management)",
        "bad of mgmt_switch (management) is joined to h1 (fabric)",
    ]
    assert ("leaf1-mgmt0", "h1", "raw") in wrong_cells(measured)


def test_the_firewall_holds_against_that_bridge(me: User) -> None:
    """The second line: the management switch passes nothing from a port that it does not know."""
    with lab_up(me, SPEC, *EXACT):
        join_by_a_bridge(me)
        measured = reachability(me)
    assert len(measured["joints"]) == 2
    assert {target for _, target, _ in wrong_cells(measured)} == {"mgmt_switch"}


def test_labs_without_it_have_none(me: User) -> None:
    with lab_up(me, SPEC.replace("management: on", ""), *EXACT):
        for node in ("mgmt", "mgmt_switch"):
            assert "there is no host or switch" in refused(me, "exec", node, "--", "true")
        assert "management: on" in refused(me, "exec", "--management", "h1", "--", "true")
        assert "management: on" in refused(me, "reachability")


def test_bgp_knows_nothing_of_it(me: User) -> None:
    """M5: a switch that runs FRR has a loopback address and routes; none is of the other side."""
    need("FRR")
    with_bgp = SPEC.replace("switches: {", "switches: {routing: {control_plane: bgp}, ")
    with lab_up(me, with_bgp, "--set", "slowdown=1000"):
        eventually(lambda: "proto bgp" in said(me, "leaf1", "ip", "route"))
        for command in (("ip", "route"), ("vtysh", "-c", "show bgp ipv4"), ("ip", "address")):
            assert "172.16" not in said(me, "leaf1", *command)
        measured = reachability(me)
    assert (wrong_cells(measured), measured["joints"]) == (set(), [])
    targets = {cell["target"] for cell in measured["cells"] if cell["source"] == "mgmt"}
    assert {"leaf1", "leaf1-mgmt0"} <= targets
