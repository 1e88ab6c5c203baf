"""Traffic over routes, keys and levels that OpenSM configured, on the virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.measure.observation import Observation
from emu.report.findings import findings
from emu.report.run_tables import totals_table
from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualFabric, VirtualRunner
from emu.spec.model import spec_from_text
from emu.subnet.sm_sweeps import manage

TREE = """
fabric: ib
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
traffic: [{name: flow, pattern: pair, from: h1, to: h3, op: write, size: 1MB}]
switches: {routing: {convergence: 20us}}
"""
PARTITION = "subnet.partitions={blue: {pkey: 0x12, full: FULL, limited: LIMITED}}"


def observed(workdir: Path, *settings: str, text: str = TREE, until_ns: int) -> Observation:
    spec = spec_from_text(text.encode(), source="test.emu.yml", settings=settings)
    topology = spec.topology.build()
    with VirtualFabric(spec, topology, manage(spec, topology, workdir)) as run:
        run.start()
        run.run_until(until_ns)
        return run.observe()


def test_flow_fails_over_to_the_other_spine(tmp_path: Path) -> None:
    """The transport resends the packets that were lost until the new tables were in force."""
    fault = "faults=[{at: 30us, link-down: {cable: leaf1:spineN}}]"
    ends = []
    for spine in ("1", "2"):
        seen = observed(tmp_path / spine, fault.replace("N", spine), until_ns=3_000_000)
        (flow,) = seen.flows
        assert flow.completed
        lost = sum(raw["link_down_discard"][0] for raw in seen.ports.values())
        ends.append((flow.resent > 0, lost > 0))
    assert sorted(ends) == [(False, False), (True, True)]


@pytest.mark.parametrize(
    ("full", "limited", "talks"),
    [("[h1, h3]", "[]", True), ("h1", "h3", True), ("h3", "h1", True), ("h2", "[h1, h3]", False)],
)
def test_members_talk_unless_both_are_limited(
    full: str, limited: str, talks: bool, tmp_path: Path
) -> None:
    """Two limited members count each other's packets as violations and receive nothing."""
    partition = PARTITION.replace("FULL", full).replace("LIMITED", limited)
    partition = partition.replace(", limited: []", "")
    seen = observed(tmp_path, partition, "traffic.0.partition=blue", until_ns=500_000)
    assert seen.nics is not None
    assert seen.flows[0].completed is talks
    assert (seen.nics["h3"]["rx_pkey_violations"] > 0) is not talks


def test_host_outside_the_partition_receives_nothing(tmp_path: Path) -> None:
    """h3 has only the default P_Key."""
    partition = "subnet.partitions={blue: {pkey: 0x12, full: [h1, h2]}}"
    seen = observed(tmp_path, partition, "traffic.0.partition=blue", until_ns=500_000)
    assert seen.nics is not None
    assert seen.nics["h3"]["rx_pkey_violations"] > 100
    assert not seen.flows[0].completed


def test_switch_drops_foreign_packets_on_egress(tmp_path: Path) -> None:
    """The leaf drops them before the host could count a violation."""
    settings = ("subnet.partitions={blue: {pkey: 0x12, full: [h1, h2]}}", "subnet.part_enforce=out")
    seen = observed(tmp_path, *settings, "traffic.0.partition=blue", until_ns=500_000)
    assert seen.nics is not None
    assert seen.nics["h3"]["rx_pkey_violations"] == 0
    assert seen.ports["leaf2:h3"]["xmit_constraint_errors"][0] > 100
    assert not seen.flows[0].completed


@pytest.mark.parametrize("enforce", ["off", "in", "out", "both"])
@pytest.mark.parametrize("key", [0x8012, 0x0012, 0x8013, 0xFFFF])
def test_switch_accepts_only_keys_of_the_host_on_ingress(
    enforce: str, key: int, tmp_path: Path
) -> None:
    """A forged packet from h1, a limited member of blue, to itself, with either membership bit."""
    settings = (
        f"subnet.part_enforce={enforce}",
        "subnet.partitions={blue: {pkey: 0x12, limited: h1}}",
    )
    spec = spec_from_text(TREE.encode(), source="test.emu.yml", settings=settings)
    topology = spec.topology.build()
    subnet = manage(spec, topology, tmp_path)
    lid = subnet.lids["h1"].to_bytes(2)
    with VirtualFabric(spec, topology, subnet) as run:
        run.fabric.start()
        run.inject(
            "h1:leaf1", b"\0\2" + lid + b"\0\6" + lid + b"\4\0" + key.to_bytes(2) + bytes(14)
        )
        run.run_until(5_000)
        port = run.fabric.counters(topology.port_named["leaf1:h1"])
    passes = enforce == "off" or key & 0x7FFF in (0x12, 0x7FFF)
    assert sum(port["tx_packets"]) == passes
    assert port["rcv_constraint_errors"][0] == (not passes and enforce in ("in", "both"))
    assert port["xmit_constraint_errors"][0] == (not passes and enforce == "out")


def test_flows_alternate_over_a_hosts_lids(tmp_path: Path) -> None:
    """Two flows of the same pair use both spines with LMC 1, and one spine without."""
    both = "{name: %s, pattern: pair, from: h1, to: h3, op: write, size: 200KB}"
    traffic = f"traffic=[{both % 'one'}, {both % 'two'}]"
    for lmc, spines in ((0, 1), (1, 2)):
        seen = observed(tmp_path / str(lmc), traffic, f"subnet.lmc={lmc}", until_ns=500_000)
        assert all(flow.completed for flow in seen.flows)
        used = [
            name
            for name in ("leaf1:spine1", "leaf1:spine2")
            if sum(seen.ports[name]["tx_bytes"]) > 100_000
        ]
        assert len(used) == spines


def test_packets_carry_the_service_level_of_their_path(tmp_path: Path) -> None:
    """dfsssp separates the paths of a ring by levels, so packets use several lanes."""
    ring = TREE.replace(
        "leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2",
        "ring, switches: 5, hosts_per_switch: 1",
    )
    traffic = "traffic=[{name: t, pattern: all-to-all, among: h1-h5, op: write, size: 100KB}]"
    settings = (
        traffic,
        "switches.credits.vls=8",
        "subnet.engine=dfsssp",
        "subnet.vl_arbitration={high: {}, low: " + str(dict.fromkeys(range(8), 64)) + "}",
    )
    seen = observed(tmp_path, *settings, text=ring, until_ns=3_000_000)
    assert all(flow.completed for flow in seen.flows)
    lanes = {vl for raw in seen.ports.values() for vl, sent in enumerate(raw["tx_bytes"]) if sent}
    assert len(lanes) > 1


def reported(workdir: Path, *settings: str, text: str = TREE) -> RunFacts:
    spec = spec_from_text(text.encode(), source="test.emu.yml", settings=settings)
    topology = spec.topology.build()
    subnet = manage(spec, topology, workdir)
    recording = VirtualRunner(subnet).run(spec, out=workdir)
    return RunFacts(spec.name, recording, spec, topology)


def total(run: RunFacts, label: str) -> int:
    counts = {row[0].text: row[1].text for row in totals_table(run).rows}
    return int(counts.get(label, "0").replace(",", ""))


RING = """
name: ring
fabric: ib
topology: {kind: ring, switches: 5, hosts_per_switch: 1}
traffic: [{name: round, pattern: pair, from: all, to: ["all[2:]", "all[:2]"], size: 2MB}]
subnet: {engine: minhop, head_of_queue_lifetime: 3, leaf_head_of_queue_lifetime: 3}
time_limit: 1ms
verify: [{lossless: {priority: 0}}]
"""


def test_head_of_queue_drops_are_reported_as_loss(
    tmp_path: Path,
) -> None:
    """In the totals, the findings and the check, as many as the ports discarded."""
    run = reported(tmp_path, text=RING)
    discarded = sum(own["PortXmitDiscards"] for own in run.recording.ports.values())
    assert discarded > 0
    assert total(run, "other drops") == run.drops == discarded
    assert totals_table(run).note.endswith(f" PortXmitDiscards {discarded:,}.")
    unfinished, loss, *_ = findings([run])
    assert unfinished.startswith("ring did not finish 5 of 5 flows: a deadlock was found at 100 us")
    assert loss.startswith(f"Loss: ring dropped {discarded:,} packets")
    (lossless,) = run.checks
    assert (lossless.passed, lossless.detail) == (False, f"{discarded:,} packets dropped")


def test_damaged_packets_at_a_nic_are_in_the_totals(tmp_path: Path) -> None:
    """Cut-through switches forward them, so no port drops any."""
    run = reported(
        tmp_path, "faults=[{corruption: {cable: 'h3:leaf2', every: 7}}]", "traffic.0.size=100KB"
    )
    damaged = sum(own.get("rx_crc_errors", 0) for own in run.recording.hosts.values())
    assert damaged > 0
    assert total(run, "dropped by NICs") == damaged
    assert total(run, "other drops") == run.drops == 0


STRANGER = (
    "subnet.partitions={blue: {pkey: 0x12, full: [h1, h2]}}",
    "traffic.0.partition=blue",
    "traffic.0.size=100KB",
    "time_limit=2ms",
    "verify=[{lossless: {priority: 0}}]",
)


def test_pkey_violations_at_a_host_are_reported(tmp_path: Path) -> None:
    """No switch drops the packets, so the fabric is lossless."""
    run = reported(tmp_path, *STRANGER)
    refused = run.recording.hosts["h3"]["rx_pkey_violations"]
    assert refused > 0
    assert total(run, "dropped by hosts (rx_pkey_violations)") == refused
    assert total(run, "other drops") == run.drops == 0
    assert f"In test, h3 dropped {refused:,} packets for their P_Keys." in findings([run])
    assert [check.passed for check in run.checks] == [True]


def test_pkey_violations_at_a_switch_are_reported_as_loss(
    tmp_path: Path,
) -> None:
    """None of the packets reaches the host."""
    run = reported(tmp_path, *STRANGER, "subnet.part_enforce=both")
    refused = run.recording.ports["leaf2:h3"]["PortXmitConstraintErrors"]
    assert refused > 0
    assert total(run, "other drops") == run.drops == refused
    assert not run.refusals
    assert [check.passed for check in run.checks] == [False]
