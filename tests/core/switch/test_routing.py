"""The path of packets among several, and their routes when links fail and return."""

from __future__ import annotations

from itertools import pairwise

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from emu._core import lib
from emu.bindings.source_ports import source_ports
from emu.runtime.virtual import VirtualFabric
from emu.wire.layers import BTH
from tests.support.frames import frames_of
from tests.support.small_fabrics import (
    Outcome,
    finish,
    outcome_of,
    outcome_so_far,
    port,
    spec_of,
    started,
)

CLOS = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 4}
switches: {pfc: {xoff: 96KB}, routing: {convergence: 20us}}
traffic: [{name: pairs, pattern: pair, from: h1-h4, to: h5-h8, op: write, size: 1MB}]
"""
ALL_TO_ALL = ("traffic=[{name: all, pattern: all-to-all, among: h1-h8, op: write, size: 400KB}]",)
LOPSIDED = """
topology:
  kind: graph
  switches: [leaf1, leaf2, spine1, spine2]
  hosts: [h1, h2, h3, h4]
  links:
    - {between: [leaf1, h1]}
    - {between: [leaf1, h2]}
    - {between: [leaf2, h3]}
    - {between: [leaf2, h4]}
    - {between: [leaf1, spine1]}
    - {between: [leaf2, spine1]}
    - {between: [leaf1, spine2], rate: 25Gbit}
    - {between: [leaf2, spine2], rate: 25Gbit}
switches: {pfc: {xoff: 96KB}}
traffic: [{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 1MB}]
"""
"""A fabric with one fast and one slow spine."""


def kind(name: str, more: str = "") -> str:
    return f"switches.routing={{kind: {name}, convergence: 20us{more}}}"


def uplinks(outcome: Outcome, leaf: str = "leaf1") -> list[int]:
    """Bytes that the leaf sent to each spine."""
    return [sum(outcome.ports[f"{leaf}:spine{n}"]["tx_bytes"]) for n in (1, 2)]


def test_spraying_balances_uplinks_to_one_packet() -> None:
    """Over data and acknowledgements, whatever their order."""
    one, other = uplinks(outcome_of(CLOS, kind("spray"), *ALL_TO_ALL))
    assert one > 1_000_000
    assert abs(one - other) <= 4200


def test_spraying_balances_uplinks_on_infiniband() -> None:
    one, other = uplinks(outcome_of(CLOS, kind("spray"), *ALL_TO_ALL, "fabric=ib"))
    assert one > 1_000_000
    assert abs(one - other) <= 4200


@pytest.mark.parametrize(("name", "share"), [("spray", 0.5), ("adaptive", 0.0)])
def test_other_service_levels_follow_the_forwarding_tables(name: str, share: float) -> None:
    """A flow on SL 0 keeps to one spine; one on SL 1 is sprayed over both, or adaptive routing
    avoids that spine."""
    settings = (
        f"switches.routing={{kind: {name}, sls: [1]}}",
        "switches.credits.vls=2",
        "subnet.vl_arbitration={high: {}, low: {0: 64, 1: 64}}",
        "hosts.nic={recovery: selective-repeat, reordering: 64}",
        "traffic=[{name: table, pattern: pair, from: h1, to: h5, size: 400KB, priority: 0}, "
        "{name: choice, pattern: pair, from: h2, to: h6, size: 400KB, priority: 1}]",
    )
    outcome = outcome_of(CLOS, *settings, "fabric=ib")
    idle, taken = sorted(outcome.ports[f"leaf1:spine{n}"]["tx_bytes"] for n in (1, 2))
    assert idle[0] == 0 < taken[0]
    assert taken[1] / (idle[1] + taken[1]) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_adaptive_routing_sends_less_over_a_slow_path(fabric: str) -> None:
    """One spine has a quarter of the other's rate: adaptive routing sends a fifth over it, spraying
    half."""
    share = {}
    for name in ("spray", "adaptive"):
        fast, slow = uplinks(outcome_of(LOPSIDED, kind(name), f"fabric={fabric}"))
        share[name] = slow / (fast + slow)
    assert share["spray"] == pytest.approx(0.5, abs=0.01)
    assert share["adaptive"] == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_reordering_tolerance_avoids_repeated_requests(fabric: str) -> None:
    """Two spines, one further away: READ responses overtake each other by fewer than 1 MB / 4096
    packets. Requesters with a tolerance of that many packets never repeat a request; those without
    do."""
    settings = (
        "topology.cables=[{cable: 'leaf1:spine2', delay: 5us}]",
        "switches.routing.kind=spray",
        "hosts.nic.recovery=selective-repeat",
        "traffic.0.op=read",
        f"fabric={fabric}",
    )
    asked = {}
    for packets in (0, 245):
        outcome = outcome_of(CLOS, *settings, f"hosts.nic.reordering={packets}")
        assert all(flow.completed for flow in outcome.flows.values())
        hosts = outcome.hosts.values()
        asked[packets] = sum(host["implied_nak_seq_err"] for host in hosts)
        sent_again = sum(host["retransmitted_packets"] for host in hosts)
        assert (sent_again > 0) == (packets == 0)
    assert asked[0] > 0 == asked[245]


def test_flowlet_changes_path_only_after_its_gap() -> None:
    """A single flow: with a gap longer than its pauses it keeps its path."""
    one_flow = "traffic=[{name: one, pattern: pair, from: h1, to: h5, op: write, size: 1MB}]"
    still = uplinks(outcome_of(CLOS, kind("flowlet", ", gap: 1ms"), one_flow))
    restless = uplinks(outcome_of(CLOS, kind("flowlet", ", gap: 1ns"), one_flow))
    assert min(still) == 0
    assert min(restless) > 200_000


def test_pinned_flows_take_their_paths() -> None:
    """Three over spine2, one over spine1, whatever their hashes are."""
    paths = ", paths: {pairs.h1-h5: spine2, pairs.h2-h6: spine2, pairs.h3-h7: spine2, pairs.h4-h8: "
    outcome = outcome_of(CLOS, kind("pinned", paths + "spine1}"))
    one, three = uplinks(outcome)
    assert three == 3 * one > 1_000_000


def test_udp_source_ports_are_known_in_advance() -> None:
    """They equal those of the packets in the run."""
    spec = spec_of(CLOS, "capture=[leaf1:spine1, leaf1:spine2]", *ALL_TO_ALL)
    with started(spec) as run:
        finish(run)
        packets = [Ether(bytes_) for _, bytes_ in frames_of(run.fabric.captured())]
    seen = {
        (packet[IP].src, packet[IP].dst, packet[UDP].sport)
        for packet in packets
        if UDP in packet and packet[UDP].len > 1000
    }
    address = {name: str(host.ip) for name, host in run.topology.host.items()}
    ports = source_ports(spec.fabric_flows())
    expected = {
        (address[flow.src], address[flow.dst], ports[flow.name])
        for flow in spec.workload().flows
        if (int(flow.src[1:]) > 4) != (int(flow.dst[1:]) > 4)
    }
    assert seen == expected


@pytest.mark.parametrize(("name", "used"), [("ecmp", 1), ("ecmp-qp", 2)])
def test_ecmp_qp_spreads_queue_pairs_of_one_5_tuple(name: str, used: int) -> None:
    """32 queue pairs behind one 5-tuple, in packets that scapy builds."""
    with started(spec_of(CLOS, "traffic=[]", kind(name))) as run:
        for qp in range(32):
            ip = IP(src="10.0.0.1", dst="10.0.0.5", ttl=64) / UDP(sport=0xC000, dport=4791)
            inject(run, "h1:leaf1", bytes(Ether() / ip / BTH(dest_qp=qp) / bytes(60)))
        run.run_until(1_000_000)
        assert sum(sent > 0 for sent in uplinks(outcome_so_far(run))) == used


def inject(run: VirtualFabric, at: str, frame: bytes) -> None:
    assert lib.fabric_inject(run.fabric.core, run.fabric.index[port(run, at)], 0, frame, len(frame))


@pytest.mark.parametrize("name", ["ecmp", "spray"])
@pytest.mark.parametrize("cable", ["leaf1:spine1", "leaf2:spine1"])
def test_link_loss_ends_with_convergence(cable: str, name: str) -> None:
    """Near or far, routes avoid a failed link from `convergence` after the failure on."""
    down = f"faults=[{{at: 30us, for: 100us, link-down: {{cable: '{cable}'}}}}]"
    with started(spec_of(CLOS, kind(name), down, "hosts.nic.timeout=8")) as run:
        lost = [lost_by(run, at_ns) for at_ns in (29_999, 40_000, 55_000, 125_000)]
        uses = [uplinks(at(run, at_ns))[0] for at_ns in (126_000, 149_000)]
        outcome = finish(run, within_ns=50_000_000)
    assert lost[0] == 0 < lost[1] < lost[2] == lost[3]
    assert uses[0] == uses[1]
    assert all(flow.completed for flow in outcome.flows.values())
    assert uplinks(outcome)[0] > uses[1]


def at(run: VirtualFabric, now_ns: int) -> Outcome:
    run.run_until(now_ns)
    return outcome_so_far(run)


def lost_by(run: VirtualFabric, now_ns: int) -> int:
    return at(run, now_ns).total("link_down_discard")


def test_unreachable_host_is_dropped_at_the_first_switch() -> None:
    """Once the network knows that the cable of h5 is cut, no packet for h5 crosses a spine."""
    one = "traffic=[{name: pairs, pattern: pair, from: h1, to: h5, op: write, size: 1MB}]"
    down = "faults=[{at: 30us, for: 2ms, link-down: {cable: 'leaf2:h5'}}]"
    with started(spec_of(CLOS, down, one)) as run:
        crossed = [sum(uplinks(at(run, ns))) for ns in (60_000, 1_900_000)]
        outcome = finish(run, within_ns=90_000_000)
    assert crossed[0] == crossed[1]
    assert outcome.total("no_route") > 0
    assert outcome.flows["pairs"].completed


def test_flapping_link_is_left_and_used_in_event_order() -> None:
    flap = "faults=[{for: 200us, link-flap: {cable: 'leaf1:spine1', period: 50us, down: 25us}}]"
    with started(spec_of(CLOS, kind("spray"), flap)) as run:
        sent = [uplinks(at(run, ns))[0] for ns in (21_000, 44_000, 46_000, 69_000)]
        grows = [late > early for early, late in pairwise(sent)]
        assert grows == [False, True, True]
