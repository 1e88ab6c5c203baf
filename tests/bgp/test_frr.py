"""The real FRR on the switches of small fabrics, in namespaces of this machine."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from emu.bgp.recorder import with_learned_routes
from emu.bmwg import failover
from emu.errors import EmuError, FabricError, HostError, UsageError
from emu.lab.frr import daemons
from emu.spec.model import Spec, spec_from_text
from emu.spec.rerouting import reroutings
from emu.spec.route_recording import RouteRecording, read_recording
from tests.support.needs import need
from tests.support.waiting import eventually
from topologies.graph import Port

LEAF_SPINE = "topology: {kind: leaf-spine, spines: 2, leaves: 3, hosts_per_leaf: 2}\n"
FAT_TREE = "topology: {kind: fat-tree, k: 4}\n"
RING = "topology: {kind: ring, switches: 4, hosts_per_switch: 1}\n"
BGP = "switches: {routing: {control_plane: bgp}%s}\n"
LEAF1 = ", nodes: {leaf1: {routing: {bgp: {%s}}}}"
TRAFFIC = "traffic: [{name: f, pattern: pair, from: h1, to: h3, size: 1MB}]\n"
CUT = "faults: [{link-down: {cable: 'leaf1:spine1'}, at: 1ms}]\ntime_limit: 1s\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test records its routes anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _frr() -> None:
    need("namespaces", "FRR")


def spec_of(text: str) -> Spec:
    return spec_from_text(text.encode(), source="spec")


def recorded(text: str) -> tuple[Spec, RouteRecording]:
    spec = with_learned_routes(spec_of(text))
    return spec, read_recording(Path(str(spec.recorded_routes)))


def ports_of(hops: dict[str, tuple[Port, ...]]) -> dict[str, list[int]]:
    return {host: [port.number for port in ports] for host, ports in hops.items()}


@pytest.mark.parametrize("fabric", [LEAF_SPINE, FAT_TREE, RING])
def test_settled_routes_are_the_shortest_paths(fabric: str) -> None:
    """Those of FRR and those of a breadth-first search, at every switch, to every host."""
    spec, recording = recorded(fabric + BGP % "" + TRAFFIC)
    assert recording.holds_until_ns is None
    assert reroutings(spec) == []
    topology = spec.topology.build()
    some = next(iter(topology.switch))
    others = ports_of(topology.hops_of(some, topology.host))
    own = [host for host in topology.host if topology.neighbours[host] == [some]]
    told = {host.name: recording.first[some].get(f"{host.ip}/32", ()) for host in topology.hosts}
    assert {host: list(ports) for host, ports in told.items() if ports} == {
        host: ports for host, ports in others.items() if host not in own
    }


def test_each_switch_learns_of_a_lost_link_in_its_turn() -> None:
    """leaf1 leaves the port at once; the others when spine1's withdrawal has come, some 125 ms
    later on an idle machine. Nobody else changes anything."""
    spec, recording = recorded(LEAF_SPINE + BGP % "" + TRAFFIC + CUT)
    changes = reroutings(spec)
    assert {change.cause_ps for change in changes} == {10**9}
    at_once = [change for change in changes if change.at_ps == 1_100_000_000]
    later = [change for change in changes if change.at_ps > 1_100_000_000]
    assert [change.switch for change in at_once] == ["spine1", "leaf1"]
    assert ports_of(at_once[0].changes) == {"h1": [], "h2": []}
    assert ports_of(at_once[1].changes) == {host: [4] for host in ("h3", "h4", "h5", "h6")}
    for leaf in ("leaf2", "leaf3"):
        told = [change for change in later if change.switch == leaf]
        assert {host: ports for one in told for host, ports in ports_of(one.changes).items()} == {
            "h1": [4],
            "h2": [4],
        }
        assert all(change.at_ps > 50 * 10**9 for change in told)
    assert {change.switch for change in later} == {"leaf2", "leaf3"}
    lost = {(one.switch, one.interface) for one in recording.sessions if not one.established}
    assert lost == {("leaf1", "leaf1-eth3"), ("spine1", "spine1-eth1")}
    assert recording.holds_until_ns is None


def test_silent_failure_is_found_by_bfd_before_the_hold_time() -> None:
    """A cable that loses every packet, while its ports stay up. BFD misses three packets, BGP no
    keepalive for the hold time; no switch takes the port out of its routes by itself."""
    silent = "faults: [{loss: {cable: 'leaf1:spine1', every: 1}, at: 1ms}]\ntime_limit: 20s\n"
    found = {}
    for name, keys in (("bfd", ", bfd: {interval: 50ms}"), ("hold", "")):
        bgp = BGP.replace("bgp}", f"bgp, bgp: {{keepalive: 1s, hold: 3s{keys}}}}}") % ""
        spec, recording = recorded(LEAF_SPINE + bgp + TRAFFIC + silent)
        changes = reroutings(spec)
        assert recording.holds_until_ns is None
        assert {change.switch for change in changes} == {"leaf1", "leaf2", "leaf3", "spine1"}
        found[name] = min(change.at_ps for change in changes) / 10**9 - 1
    assert 100 < found["bfd"] < found["hold"]
    assert found["hold"] > 1000


def test_returned_link_is_used_again() -> None:
    text = LEAF_SPINE + BGP % "" + TRAFFIC + CUT.replace("1ms", "1ms, for: 500ms")
    spec, recording = recorded(text.replace("time_limit: 1s", "time_limit: 30s"))
    assert recording.holds_until_ns is None
    topology = spec.topology.build()
    hops = {switch: topology.hops_of(switch, topology.host) for switch in topology.switch}
    at_first = {switch: dict(own) for switch, own in hops.items()}
    for change in reroutings(spec):
        hops[change.switch] |= change.changes
    assert hops == at_first


def test_recording_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = LEAF_SPINE + BGP % "" + TRAFFIC
    spec, _ = recorded(text)
    monkeypatch.setattr("emu.bgp.recorder._record", None)
    assert recorded(text)[0] == spec
    assert with_learned_routes(spec) is spec


def test_without_multipath_relax_a_spine_route_has_one_hop() -> None:
    """Paths over switches of different autonomous systems are not equal then. Over spines of one
    they are, so nothing changes in a leaf-spine fabric; with numbers of their own it does."""
    own = "{spine1: {routing: {bgp: {asn: 65001}}}, spine2: {routing: {bgp: {asn: 65002}}}}"
    text = (
        LEAF_SPINE + "switches: {routing: {control_plane: bgp%s}, nodes: " + own + "}\n" + TRAFFIC
    )
    assert reroutings(recorded(text % "")[0]) == []
    changes = reroutings(recorded(text % ", bgp: {multipath_relax: no}")[0])
    assert {len(ports) for change in changes for ports in change.changes.values()} == {1}
    assert {change.switch for change in changes} == {"leaf1", "leaf2", "leaf3"}


def test_session_that_is_shut_down_leaves_other_paths() -> None:
    nodes = BGP % (LEAF1 % "shutdown: [spine1]")
    spec, recording = recorded(LEAF_SPINE + nodes + TRAFFIC)
    hops = {change.switch: ports_of(change.changes) for change in reroutings(spec)}
    assert hops["leaf1"] == {host: [4] for host in ("h3", "h4", "h5", "h6")}
    assert hops["spine1"] == {"h1": [], "h2": []}
    assert hops["leaf2"] == {"h1": [4], "h2": [4]}
    assert recording.holds_until_ns is None


def test_wrong_number_prevents_sessions() -> None:
    """A leaf with the spines' number: both ends want another one (remote-as external)."""
    nodes = BGP % (LEAF1 % "asn: 4200100001")
    notes: list[str] = []
    spec = with_learned_routes(spec_of(LEAF_SPINE + nodes + TRAFFIC), notes.append)
    hops = {change.switch: ports_of(change.changes) for change in reroutings(spec)}
    ends = "leaf1-eth3, leaf1-eth4, spine1-eth1 and spine2-eth1"
    assert f"no session of BGP was established at {ends}" in notes
    assert hops["leaf1"] == {host: [] for host in ("h3", "h4", "h5", "h6")}
    assert hops["leaf2"] == {"h1": [], "h2": []}


def test_leaked_default_route_attracts_lost_packets() -> None:
    """A spine without a route to h1 sends its packets to the leaf that announces a default."""
    nodes = BGP % (LEAF1.replace("leaf1", "leaf2") % "default_originate: yes")
    spec, _ = recorded(LEAF_SPINE + nodes + TRAFFIC + CUT)
    at_once = {one.switch: ports_of(one.changes) for one in reroutings(spec)[:2]}
    assert at_once["spine1"] == {"h1": [2], "h2": [2]}


def test_own_configuration_replaces_the_generated_one(tmp_path: Path) -> None:
    conf = tmp_path / "leaf1.conf"
    conf.write_text(
        "frr defaults traditional\nlog syslog informational\n"
        "router bgp 65123\n no bgp ebgp-requires-policy\n"
        " neighbor leaf1-eth3 interface remote-as external\n"
        " address-family ipv4 unicast\n  redistribute connected\n exit-address-family\n"
    )
    nodes = BGP % (LEAF1 % f"frr_conf: {conf}")
    spec, _ = recorded(LEAF_SPINE + nodes + TRAFFIC)
    hops = {change.switch: ports_of(change.changes) for change in reroutings(spec)}
    assert hops["leaf1"] == {host: [3] for host in ("h3", "h4", "h5", "h6")}
    assert hops["spine2"] == {"h1": [], "h2": []}


@pytest.mark.parametrize("line", ["ip route 10.0.0.1/32 Null0", "router ospf"])
def test_commands_for_other_daemons_are_refused(tmp_path: Path, line: str) -> None:
    conf = tmp_path / "leaf1.conf"
    conf.write_text(f"router bgp 65123\n!\n{line}\n")
    nodes = BGP % (LEAF1 % f"frr_conf: {conf}")
    with pytest.raises(UsageError, match=f"leaf1.conf: line 3: '{line}' is for a daemon that"):
        recorded(LEAF_SPINE + nodes + TRAFFIC)


def test_refused_configuration_is_quoted(tmp_path: Path) -> None:
    conf = tmp_path / "leaf1.conf"
    conf.write_text("router bgp 65123\n maximum-pathways 64\n")
    nodes = BGP % (LEAF1 % f"frr_conf: {conf}")
    with pytest.raises(
        FabricError, match=r"FRR refused the configuration of leaf1:\nline 2: .*maximum-pathways"
    ):
        recorded(LEAF_SPINE + nodes + TRAFFIC)
    assert not list(tmp_path.glob("cache/emu/routes/*.json"))


def test_daemon_that_ends_is_named() -> None:
    with ThreadPoolExecutor() as background:
        recording = background.submit(recorded, LEAF_SPINE + BGP % "" + TRAFFIC)
        eventually(lambda: len(_children("bgpd")) == 5)
        os.kill(_children("bgpd")[0], signal.SIGKILL)
        with pytest.raises(FabricError, match=r"\d: bgpd (has ended|did not start)"):
            recording.result()
    assert _children("zebra") == []


def _children(name: str) -> list[int]:
    """The processes of this name that descend from this one."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            text = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            parents[int(text["Pid"])] = int(text["PPid"]), text["Name"]
    found = []
    for pid, (parent, own_name) in parents.items():
        while parent not in (0, os.getpid()):
            parent, _ = parents.get(parent, (0, ""))
        if own_name == name and parent == os.getpid():
            found.append(pid)
    return found


def test_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc")
    with pytest.raises(EmuError, match=r"/proc/emu/routes: .*folder by XDG_CACHE_HOME"):
        recorded(LEAF_SPINE + BGP % "" + TRAFFIC)


def test_missing_frr_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(daemons, "_LIBRARY", tmp_path)
    with pytest.raises(HostError, match=r"zebra, bgpd, bfdd not installed; .*apt-get install frr"):
        recorded(LEAF_SPINE + BGP % "" + TRAFFIC)
    assert shutil.which("vtysh")


def test_failover_takes_until_the_last_switch_knows() -> None:
    """In a benchmark report. That the spine has no other path cuts nobody off."""
    spec, _ = recorded(LEAF_SPINE + BGP % "" + TRAFFIC + CUT)
    ((name, fault),) = failover.lost_links(spec).items()
    outage = failover.outage_of(spec, name, fault)
    assert outage.cut_off == []
    last_ps = max(change.at_ps for change in reroutings(spec))
    assert max(change.at_ps for change in outage.changes) == last_ps > 50 * 10**9
