"""Diagnoses: each pathology is found by its detector, and its printed settings cure it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from emu.measure.records import TCP, FailedQueuePair
from emu.report import fixes, held_rates
from emu.report.diagnosis import PATHOLOGIES, diagnoses
from emu.report.run_view import RunFacts
from emu.spec.model import spec_from_text
from tests.support.sick_fabrics import ONE_LEAF, SICK, TWO_LEAVES, facts_of
from topologies.graph import Port

MISTUNED = {
    "priority map differs at a hop": TWO_LEAVES
    + """
switches: {pfc: on}
traffic: [{name: many, pattern: incast, from: h5-h8, to: h1, size: 1MB}]
faults: [{loss: {cable: "leaf1:h2", every: 9}}, {wrong-map: {switch: spine1, dscp: {26: 0}}}]
""",
    "headroom too small": ONE_LEAF.replace("CC", "none")
    + """
switches: {pfc: on}
faults: [{at: 100us, for: 500us, small-headroom: {switch: leaf1, headroom: 2KB}}]
""",
    "Kmin above XOFF": ONE_LEAF.replace("CC", "dcqcn-nvidia")
    + """
switches: {pfc: {xoff: 96KB}, ecn: {kmin: 20KB, kmax: 80KB}}
faults: [{name: late, at: 100us, wrong-ecn: {switch: leaf1, kmin: 900KB, kmax: 1MB}}]
""",
    "ignored CNPs": ONE_LEAF.replace("CC", "dcqcn-nvidia")
    + """
switches: {pfc: {xoff: 96KB}, ecn: {kmin: 20KB, kmax: 80KB}}
faults: [{ignored-cnps: {host: h2}}, {at: 1999us, loss: {cable: "leaf1:h1", every: 9}}]
""",
}
"""Pathology -> a healthy fabric with the fault that causes it. A second fault is harmless."""

ALERT = "{detection: 100us, restoration: 100us, poll: 50us, action: alert}"


def slow_under_dcqcn(*, kmin: str, kmax: str, rate: str) -> str:
    """A spec in which the first of three receivers behind a link gets
    slow, and the NICs use DCQCN."""
    return f"""
topology: {{kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 3}}
hosts: {{nic: {{mtu: 1024, cc: dcqcn}}}}
switches: {{pfc: {{xoff: 96KB, xon: 64KB}}, ecn: {{kmin: {kmin}, kmax: {kmax}}}}}
traffic: [{{name: all, pattern: pair, from: h4-h6, to: h1-h3, size: 20MB}}]
faults: [{{at: 100us, slow-receiver: {{host: h1, rate: {rate}}}}}]
time_limit: 3ms
"""


HARDER = {
    "slow receiver, and marks that come too late": (
        "slow receiver",
        slow_under_dcqcn(kmin="1500KB", kmax="1800KB", rate="5Gbit"),
    ),
    "marks that come too late by a queue's own curve": (
        "Kmin above XOFF",
        SICK["Kmin above XOFF"].replace(
            "ecn: {kmin: 900KB, kmax: 1MB}",
            "ecn: {kmin: 20KB, queues: {3: {kmin: 900KB, kmax: 1MB}}}",
        ),
    ),
    "pause storm that the watchdog only tells of": (
        "pause storm",
        SICK["pause storm"].replace("{pfc: on}", f"{{pfc: on, watchdog: {ALERT}}}"),
    ),
    "pause storm that one leaf only tells of": (
        "pause storm",
        SICK["pause storm"].replace(
            "{pfc: on}", f"{{pfc: on, nodes: {{leaf1: {{watchdog: {ALERT}}}}}}}"
        ),
    ),
    "slow receiver under global pauses": (
        "slow receiver",
        SICK["slow receiver"].replace("{pfc: on}", "{pfc: {frames: pause}}"),
    ),
    "loss where PFC does not fit into the buffer": (
        "loss",
        """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 24}
hosts: {nic: {mtu: 1024}}
traffic: [{name: incast, pattern: incast, from: "all[1:]", to: h1, size: 200KB}]
time_limit: 2ms
""",
    ),
    "loss where PFC is off for one role": (
        "loss",
        TWO_LEAVES
        + """
switches: {pfc: on, roles: {leaf: {pfc: off}}}
traffic: [{name: incast, pattern: incast, from: "all[1:]", to: h1, size: 2MB}]
""",
    ),
    "priority that one port calls another": (
        "priority mismatch between NIC and switch",
        TWO_LEAVES.replace("mtu: 1024", "mtu: 1024, vlan: 7")
        + """
switches: {pfc: on, nodes: {leaf1: {ports: {h1: {classes: {trust: pcp, pcp: {3: 4}}}}}}}
traffic: [{name: flow, pattern: pair, from: h1, to: h5, size: 1MB}]
""",
    ),
    "a congestion control table that is left too slowly": (
        "slow rate recovery",
        """
fabric: ib
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 8}
hosts: {nic: {cc: cct, cct: {ccti_timer: 300}}}
switches: {fecn: {marking_rate: 0}}
traffic:
  - {name: burst, pattern: incast, from: h3-h8, to: h1, size: 1MB}
  - {name: held, pattern: pair, from: h2, to: h1, size: 16MB}
time_limit: 20ms
""",
    ),
    "go-back-0 of one NIC": (
        "go-back-0 livelock",
        SICK["go-back-0 livelock"].replace(
            "nic: {recovery: go-back-0}", "nodes: {h1: {nic: {recovery: go-back-0}}}"
        ),
    ),
}
"""Case -> pathology and spec. The obvious setting does not cure these cases."""

ONE_FLOW = "traffic: [{name: flow, pattern: pair, from: h1, to: h5, size: 1MB}]\n"

ODD_MAPS = {
    "for one port": "nodes: {spine1: {ports: {leaf1: {classes: {dscp: {26: 0}}}}}}",
    "for a role": "roles: {spine: {classes: {dscp: {26: 0}}}}",
    "where packets come in": "nodes: {leaf1: {classes: {dscp: {26: 0}}}}",
    "where they leave": "nodes: {leaf2: {classes: {dscp: {26: 0}}}}",
    "by the role, over all": "classes: {dscp: {26: 0}}, roles: {leaf: {classes: {dscp: {26: 3}}}}",
    "by a preset": "preset: sonic, roles: {spine: {preset: nvidia}}",
    "by another field": "nodes: {spine1: {classes: {trust: pcp}}}",
}
"""Place of the deviating priority map -> keys of `switches:`."""


def found_in(text: str, folder: Path, settings: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Pathology -> the settings that its diagnosis prints."""
    return {
        diagnosis.pathology.name: [
            word
            for word in shlex.split(diagnosis.in_words().partition(": --set ")[2])
            if word != "--set"
        ]
        for diagnosis in diagnoses(facts_of(text, folder, settings))
    }


@pytest.mark.parametrize("name", SICK)
def test_a_pathology_is_found_and_cured_by_its_settings(name: str, tmp_path: Path) -> None:
    """Every `--set` of the diagnosis is applied as printed."""
    sick = found_in(SICK[name], tmp_path)
    assert name in sick
    assert sick[name]
    cured = found_in(SICK[name], tmp_path, tuple(sick[name]))
    assert name not in cured


LATER = """
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 4}
switches: {pfc: on, buffer: 8MB}
traffic:
  - {name: burst, pattern: incast, from: [h2, h5, h6, h7, h8], to: h1, size: 100KB}
  - {name: later, pattern: incast, from: h5-h8, to: h2, size: 8MB, start: 1ms}
time_limit: 2ms
"""


def test_unequal_shares_before_any_pause_are_not_unfair(tmp_path: Path) -> None:
    """The first senders share a path of four and finish before the first pause."""
    run = facts_of(LATER, tmp_path)
    assert run.total("pause_frames")
    rates = [flow.goodput_bps for flow in run.flows if flow.traffic == "burst"]
    assert min(rates) < max(rates) / 2
    assert "unfair shares" not in {found.pathology.name for found in diagnoses(run)}


def test_late_marks_name_the_curve_of_the_pausing_queue(tmp_path: Path) -> None:
    """Curves of queues that pause no sender are not named."""
    _, text = HARDER["marks that come too late by a queue's own curve"]
    (told,) = (
        own
        for own in diagnoses(facts_of(text, tmp_path))
        if own.pathology.name == "Kmin above XOFF"
    )
    late = "before the first mark: Kmin is 900 KB (switches.ecn.queues.3.kmin), XOFF 96 KB"
    assert told.found.evidence.endswith(late)


LOADED = """
payload: elided
topology: {kind: fat-tree, k: 4}
switches: {pfc: on, ecn: on, buffer: 16MB}
hosts: {nic: {cc: dcqcn}}
traffic: [{name: load, pattern: background, among: all, sizes: hadoop, rate: 70Gbit, count: 150}]
time_limit: 60ms
"""


def test_open_loop_load_held_back_by_control_is_found(tmp_path: Path) -> None:
    """After the last message has begun, every unfinished flow has data to send."""
    name = "slow rate recovery"
    run = facts_of(LOADED, tmp_path)
    (told,) = (own for own in diagnoses(run) if own.pathology.name == name)
    assert told.found.evidence.startswith("load.h")
    assert told.settings == ("hosts.nic.cc=dcqcn-nvidia",)
    cured = facts_of(LOADED, tmp_path, told.settings)
    assert name not in {found.pathology.name for found in diagnoses(cured)}
    assert 2 * max(flow.end_ns or 0 for flow in cured.flows) < max(
        flow.end_ns or 0 for flow in run.flows
    )


@pytest.mark.parametrize("limit", ["2ms", "200ms"])
def test_loss_names_flows_that_waited_for_the_timer(limit: str, tmp_path: Path) -> None:
    """The timer fires before or after the end of the run. A shorter timer waits less."""
    _, many = HARDER["loss where PFC does not fit into the buffer"]
    lossy = many.replace("time_limit: 2ms", f"time_limit: {limit}")
    (told,) = (own for own in diagnoses(facts_of(lossy, tmp_path)) if own.pathology.name == "loss")
    assert "stood still until the retransmission timer" in told.found.evidence
    assert "67.11 ms (hosts.nic.timeout: 14)" in told.found.evidence


def test_a_sender_waiting_for_acks_is_not_held_back(tmp_path: Path) -> None:
    """Small messages one at a time leave the path as idle as a slow congestion control."""
    slow = SICK["slow rate recovery"]
    waits = slow.replace("size: 16MB", "size: 256B, count: 2000")
    assert waits != slow
    assert "slow rate recovery" not in found_in(waits, tmp_path)


def test_marks_of_a_port_are_read_once_for_all_flows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The detector reads them twice at most: whether and when the port marked."""
    name = "slow rate recovery"
    run = facts_of(SICK[name], tmp_path)
    asked: Counter[Port] = Counter()
    of_port = held_rates._marks_above

    def counted(run: RunFacts, port: Port) -> int:
        asked[port] += 1
        return of_port(run, port)

    monkeypatch.setattr(held_rates, "_marks_above", counted)
    assert held_rates.held_by_control(run)
    assert max(asked.values()) <= 2


@pytest.mark.parametrize("name", MISTUNED)
def test_a_misconfiguration_hides_its_consequences(name: str, tmp_path: Path) -> None:
    """The settings of its diagnosis remove this fault and keep all others."""
    run = facts_of(MISTUNED[name], tmp_path)
    (found,) = diagnoses(run)
    (guilty,) = (fault for fault in run.recording.faults if fault.kind != "loss")
    assert found.pathology.name == name
    assert found.found.evidence.startswith(f"the fault {guilty.name} at {guilty.place} causes it")
    cured = facts_of(MISTUNED[name], tmp_path, found.settings)
    assert cured.recording.faults == tuple(f for f in run.recording.faults if f is not guilty)
    assert diagnoses(cured) == []


def test_two_misconfigurations_are_both_named(tmp_path: Path) -> None:
    names = ("headroom too small", "ignored CNPs")
    small, ignored = (MISTUNED[name].partition("faults: [")[2].partition("}}")[0] for name in names)
    two = MISTUNED[names[1]].partition("faults:")[0] + f"faults: [{small}}}}}, {ignored}}}}}]\n"
    assert list(found_in(two.replace("20KB", "200KB").replace("80KB", "800KB"), tmp_path)) == [
        *names
    ]


def test_total_loss_is_no_sign_of_wrong_priorities(tmp_path: Path) -> None:
    """A first cable that loses every packet is no evidence about priority maps."""
    lost = "faults: [{loss: {cable: 'h1:leaf1', probability: 100%}}]\n"
    told = found_in(f"{TWO_LEAVES}{ONE_FLOW}switches: {{pfc: on}}\n{lost}", tmp_path)
    assert "priority mismatch between NIC and switch" not in told


@pytest.mark.parametrize("case", HARDER)
def test_settings_are_valid_and_cure_harder_cases(case: str, tmp_path: Path) -> None:
    """The obvious setting does not cure these cases."""
    name, text = HARDER[case]
    cure = found_in(text, tmp_path)[name]
    assert cure
    assert name not in found_in(text, tmp_path, tuple(cure))


@pytest.mark.parametrize("buffer", ["4MB", "3911737B"])
def test_the_settings_enable_ecn_without_thresholds(buffer: str, tmp_path: Path) -> None:
    """The thresholds follow from rate and buffer."""
    text = SICK["unfair shares"].replace("{pfc: on}", f"{{pfc: {{xoff: 500KB}}, buffer: {buffer}}}")
    cure = found_in(text, tmp_path)["unfair shares"]
    steps = ["hosts.nic.dcqcn.rai=100Mbit", "hosts.nic.dcqcn.rhai=500Mbit"]
    assert cure == ["hosts.nic.cc=dcqcn", *steps, "switches.ecn=on"]
    assert "unfair shares" not in found_in(text, tmp_path, tuple(cure))


def test_late_thresholds_are_reset_to_auto(tmp_path: Path) -> None:
    """No other numbers replace them."""
    name = "Kmin above XOFF"
    cure = found_in(SICK[name], tmp_path)[name]
    assert cure == ["switches.ecn.kmin=auto", "switches.ecn.kmax=auto"]


def test_a_well_configured_fabric_gets_no_setting(tmp_path: Path) -> None:
    """The receiver is so slow that DCQCN with early marks does not help."""
    text = slow_under_dcqcn(kmin="24KB", kmax="96KB", rate="1Gbit")
    assert found_in(text, tmp_path) == {"slow receiver": []}


def test_a_global_pause_counts_once(tmp_path: Path) -> None:
    """Counted for each priority, pauses would last longer than the run."""
    sick = SICK["pause storm"].replace("{pfc: on}", "{pfc: {frames: pause}}")
    run = facts_of(sick, tmp_path)
    (storm,) = diagnoses(run)
    assert storm.found.evidence == (
        "h1 paused its leaf for 95% of the time without a break, caused by the fault "
        "pause-storm-1 (from 100 us to the end)"
    )


LOSSY_BESIDE = "{name: lossy, pattern: incast, from: h4-h5, to: h3, size: 2MB, priority: 1}"


def test_marks_of_a_lossy_queue_do_not_hide_late_marks(tmp_path: Path) -> None:
    """Another queue marks packets, but the queue that pauses does not."""
    name = "Kmin above XOFF"
    text = SICK[name].replace("}]\ntime", f"}}, {LOSSY_BESIDE}]\ntime").replace("buffer: 1MB, ", "")
    text = text.replace("{pfc: {xoff: 96KB}", "{buffer: 8MB, pfc: {xoff: 96KB}")
    run = facts_of(text, tmp_path)
    assert run.total("ce_marked") > 0
    (late,) = (own for own in diagnoses(run) if own.pathology.name == name)
    assert "came before the first mark of a priority that pauses" in late.found.evidence


def test_drops_after_ignored_pauses_are_no_small_headroom(tmp_path: Path) -> None:
    """The paused switch has the packets on another priority, which is what the diagnosis names."""
    text = (
        MISTUNED["priority map differs at a hop"]
        .partition("faults:")[0]
        .replace("{pfc: on}", "{pfc: on, nodes: {spine1: {classes: {dscp: {26: 0}}}}}")
    )
    run = facts_of(text.replace("from: h5-h8", "from: h2-h8"), tmp_path)
    assert run.total("drops_lossless") > 0
    found = {own.pathology.name: own.found for own in diagnoses(run)}
    assert "headroom too small" not in found
    told = found["priority map differs at a hop"].evidence
    assert "pauses for that priority do not stop them: leaf1:spine1 dropped" in told


def test_loss_names_the_worst_port_and_the_sum(tmp_path: Path) -> None:
    _, many = HARDER["loss where PFC is off for one role"]
    run = facts_of(many, tmp_path)
    (told,) = (own for own in diagnoses(run) if own.pathology.name == "loss")
    drops = {
        port: count
        for port, own in run.recording.ports.items()
        if (count := sum(own.get(f"tx_prio{n}_discards", 0) for n in range(8)))
    }
    worst = max(drops, key=lambda port: drops[port])
    assert len(drops) > 1
    assert told.found.evidence.startswith(f"{worst} dropped {drops[worst]:,} packets of priority 3")
    assert f"; {len(drops)} ports dropped {sum(drops.values()):,} in all" in told.found.evidence


def test_invalid_or_ineffective_settings_are_not_printed() -> None:
    """A setting has no effect if it equals the value in force."""
    spec = spec_from_text(SICK["pause storm"].encode(), source="sick.emu.yml")
    assert fixes.effective(spec, ("switches.pfc.xoff=1GB",)) == ()
    assert fixes.effective(spec, ("hosts.nic.cc=none",)) == ()
    assert fixes.effective(spec, ("hosts.nic.cc=dcqcn",)) == ("hosts.nic.cc=dcqcn",)


@pytest.mark.parametrize("where", ODD_MAPS)
def test_a_priority_map_is_corrected_at_its_place(where: str, tmp_path: Path) -> None:
    """The new map is that of most ports, so that no port differs afterwards."""
    name = "priority map differs at a hop"
    sick = f"{TWO_LEAVES}{ONE_FLOW}switches: {{pfc: on, {ODD_MAPS[where]}}}\n"
    cure = found_in(sick, tmp_path)[name]
    assert name not in found_in(sick, tmp_path, tuple(cure))
    assert not any('"26": 0' in setting for setting in cure)


def test_every_pathology_has_a_case() -> None:
    """Three have tests of their own: they are cured by no setting, or
    not in a spec of this form."""
    own = ("failed queue pairs", "pause storm stopped by the watchdog", "loss by a fault")
    names = [pathology.name for pathology in PATHOLOGIES if pathology.name not in own]
    assert list(SICK) == list(dict.fromkeys(names))


def test_a_healthy_run_has_no_diagnosis(tmp_path: Path) -> None:
    """Congestion that ECN handles is not a pathology."""
    switches = "switches: {pfc: on, ecn: {kmin: 20KB, kmax: 80KB}}"
    healthy = ONE_LEAF.replace("CC", "dcqcn-nvidia") + switches
    assert found_in(healthy, tmp_path) == {}


@pytest.mark.parametrize("name", SICK)
def test_tcp_flows_are_diagnosed(name: str, tmp_path: Path) -> None:
    """Their `op` is no verb, and RDMA's retransmission timers do not apply."""
    run = facts_of(SICK[name], tmp_path)
    flows = tuple(replace(flow, op=TCP) for flow in run.flows)
    by_tcp = replace(run, recording=replace(run.recording, flows=flows))
    found = {own.pathology.name for own in diagnoses(by_tcp)}
    assert "premature retransmission timeout" not in found


def test_storage_commands_are_no_victims(tmp_path: Path) -> None:
    """Commands are slow because they wait for responses. The data of writes is what is paused."""
    name = "victim of head-of-line blocking"
    disk = "pattern: storage, from: h5, to: h2, reads: 0%, block: 1MB, count: 20, depth: 4"
    entry = "pattern: pair, from: h5, to: h2, size: 20MB"
    assert entry in SICK[name]
    assert name not in found_in(SICK[name].replace(entry, disk), tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        "pattern: pair, from: h5, to: h3, size: 64KB, count: 20, every: 90us",
        "pattern: ping-pong, from: h5, to: h3, size: 1KB, count: 200",
        "pattern: pair, from: h5, to: h3, size: 256B, count: 900, priority: 1",
    ],
)
def test_light_or_unpaused_flows_are_no_victims(entry: str, tmp_path: Path) -> None:
    """A real victim is beside them.

    They are paced, wait for answers, or use a priority without pauses.
    """
    name = "victim of head-of-line blocking"
    text = SICK[name].replace("{pfc: on}", "{pfc: {priorities: [1, 3]}, buffer: 16MB}")
    text = text.replace("traffic:\n", f"traffic:\n  - {{name: other, {entry}}}\n")
    found = {own.pathology.name: own.found for own in diagnoses(facts_of(text, tmp_path))}
    assert found[name].evidence.startswith("victim had")


@pytest.mark.parametrize("count", [8, 20])
def test_flows_that_share_a_full_link_are_no_victims(count: int, tmp_path: Path) -> None:
    """Three flows over one link get a third each, also if one ends early."""
    oversubscribed = f"""
topology: {{kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 3}}
hosts: {{nic: {{mtu: 1024}}}}
switches: {{pfc: on}}
traffic:
  - {{name: first, pattern: pair, from: h4, to: h1, size: 1MB, count: {count}}}
  - {{name: others, pattern: pair, from: h5-h6, to: h2-h3, size: 1MB, count: 20}}
time_limit: 3ms
"""
    assert found_in(oversubscribed, tmp_path) == {}


GIVING_UP = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 3}
hosts: {nic: {mtu: 1024, timeout: 4}}
traffic: [{name: incast, pattern: incast, from: h2-h3, to: h1, size: 1MB}]
faults: [{at: 20us, for: 1ms, loss: {cable: "h2:leaf1", probability: 100%}}]
time_limit: 100ms
"""


def test_a_queue_pair_that_gave_up_is_the_first_diagnosis(tmp_path: Path) -> None:
    """The diagnosis gives flow, time and cause. With its settings no queue pair gives up."""
    run = facts_of(GIVING_UP, tmp_path)
    (failed,) = run.recording.failed_queue_pairs
    assert (failed.flow, failed.src, failed.status) == (
        "incast.h2-h1",
        "h2",
        "IBV_WC_RETRY_EXC_ERR",
    )
    first = diagnoses(run)[0]
    assert first.pathology.name == "failed queue pairs"
    told = first.in_words()
    for words in (
        "1 queue pair went to the error state: incast.h2-h1 (h2 to h1)",
        "transport retry counter exceeded after 7 retries without progress (timeout: 4, 65.54 us)",
        "the fault loss-1 at h2:leaf1, from 20 us to 1.02 ms, is on its path and lost",
    ):
        assert words in told
    cured = facts_of(GIVING_UP, tmp_path, first.settings)
    assert cured.recording.failed_queue_pairs == ()
    assert not cured.unfinished


CUT = """
topology: {kind: leaf-spine, spines: SPINES, leaves: 2, hosts_per_leaf: 3}
hosts: {nic: {timeout: 8}}
switches: {routing: {convergence: 20ms}}
traffic: [{name: incast, pattern: incast, from: h2-h4, to: h1, size: 500KB}]
faults: [{at: 10us, link-down: {cable: "CABLE"}}]
time_limit: 200ms
"""


@pytest.mark.parametrize("cable", ["leaf1:h1", "h1:leaf1"])
def test_a_permanent_link_cut_gets_no_longer_timeout(cable: str, tmp_path: Path) -> None:
    """The spec may name either port of the cable."""
    run = facts_of(CUT.replace("CABLE", cable).replace("SPINES", "1"), tmp_path)
    assert len(run.recording.failed_queue_pairs) == 3
    first = diagnoses(run)[0]
    lost = run.recording.faults[0].packets_dropped
    said = (
        f"the fault link-down-1 at {cable}, from 10 us to the end, is on its path and lost {lost:,}"
    )
    assert said in first.found.evidence
    assert first.settings == ()


def test_a_rerouted_link_cut_gets_a_longer_timeout(tmp_path: Path) -> None:
    """One of two spines is left. A longer timeout outlives the convergence time."""
    text = CUT.replace("SPINES", "2")
    for cable in ("leaf2:spine1", "leaf2:spine2"):
        run = facts_of(text.replace("CABLE", cable), tmp_path / cable.replace(":", "-"))
        if run.recording.failed_queue_pairs:
            break
    first = diagnoses(run)[0]
    assert f"the fault link-down-1 at {cable}" in first.found.evidence
    cured = facts_of(text.replace("CABLE", cable), tmp_path / "cured", first.settings)
    assert not cured.unfinished


def test_losses_on_other_priorities_are_not_the_cause(tmp_path: Path) -> None:
    """Priority 1 drops packets of an incast. Queue pairs of the other priority get late answers."""
    late = "faults: [{at: 20us, delay: {cable: 'h1:leaf1', by: 500us}}]\n"
    text = (
        ONE_LEAF.replace("mtu: 1024, cc: CC", "mtu: 1024, timeout: 1")
        .replace("time_limit: 2ms", "time_limit: 4ms")
        .replace("to: h1, size: 2MB", "to: h2, priority: 1, size: 2MB")
        .replace('"all[1:]"', "h3-h5")
        .replace("}]", "}, {name: late, pattern: pair, from: h3, to: h1, size: 1MB}]")
    )
    run = facts_of(text + late + "switches: {pfc: on, buffer: 2MB}\n", tmp_path)
    failed = [qp.flow for qp in run.recording.failed_queue_pairs]
    assert failed[0] == "late"
    assert run.total("drops_lossy")
    assert "no packet of its priority, 3, was lost" in diagnoses(run)[0].found.evidence


def test_losses_by_a_fault_are_attributed_to_it(tmp_path: Path) -> None:
    """A few drops beside the fault's are no reason to enable PFC."""
    text = (
        CUT.replace("CABLE", "leaf1:h1").replace("SPINES", "1").replace("timeout: 8", "mtu: 1024")
    )
    text = text.replace("at: 10us,", "at: 10us, for: 300us,")
    run = facts_of(text, tmp_path)
    found = {own.pathology.name: own for own in diagnoses(run)}
    assert "loss" not in found
    told, lost = found["loss by a fault"], run.recording.faults[0].packets_dropped
    assert told.settings == ()
    said = f"the fault link-down-1 at leaf1:h1, from 10 us to 310 us, lost {lost:,} packets"
    assert told.found.evidence.startswith(said)
    assert "stood still until the retransmission timer" in told.found.evidence


def test_drops_without_a_route_are_reported_with_the_cut(tmp_path: Path) -> None:
    """The fault is their cause, though the switch counts them."""
    text = CUT.replace("CABLE", "leaf1:h1").replace("SPINES", "1").replace("20ms", "100us")
    run = facts_of(text, tmp_path)
    lost = sum(own.get("no_route", 0) for own in run.recording.ports.values())
    assert lost
    said = f"; switches dropped {lost:,} more because they had no route"
    gave_up, by_fault = diagnoses(run)
    assert gave_up.found.evidence.endswith(said)
    assert said in by_fault.found.evidence
    assert "for other reasons" not in by_fault.found.evidence


def test_switch_drops_beyond_a_faults_losses_suggest_pfc(tmp_path: Path) -> None:
    fault = "faults: [{loss: {cable: 'h2:leaf1', every: 200}}]\n"
    run = facts_of(SICK["loss"] + fault, tmp_path)
    found = {own.pathology.name: own.found for own in diagnoses(run)}
    lost = run.recording.faults[0].packets_dropped
    assert 0 < lost < run.total("drops_lossy")
    assert f"lost {lost} packet" in found["loss by a fault"].evidence
    assert found["loss"].settings


def test_a_failed_queue_pair_is_no_victim(tmp_path: Path) -> None:
    """Its low rate comes from its failure."""
    text = SICK["victim of head-of-line blocking"]
    run = facts_of(text, tmp_path)
    (told,) = (own for own in diagnoses(run) if own.pathology.name.startswith("victim"))
    victim = told.found.evidence.partition(" had ")[0]
    failed = FailedQueuePair(victim, "h5", "h2", 1_000_000, "IBV_WC_RETRY_EXC_ERR")
    gone = replace(run, recording=replace(run.recording, failed_queue_pairs=(failed,)))
    names = [own.pathology.name for own in diagnoses(gone)]
    assert names[0] == "failed queue pairs"
    assert not any(name.startswith("victim") for name in names)


def test_the_responder_of_a_read_gets_the_congestion_control(tmp_path: Path) -> None:
    """The responder sends the data, and the requester has the timer."""
    text = ONE_LEAF.replace("cc: CC", "cc: none").replace("to: h1,", "to: h1, op: read,")
    run = facts_of(text + "switches: {pfc: on, ecn: on}\n", tmp_path)
    assert run.senders == ("h1",)
    spec = spec_from_text(
        (text + "switches: {pfc: on, ecn: on}\n").encode(),
        source="sick.emu.yml",
        settings=("hosts.nodes.h1.nic.cc=none", "hosts.nodes.h2.nic.timeout=8"),
    )
    own = replace(run, spec=spec)
    assert "hosts.nodes.h1.nic.cc=dcqcn" in fixes.congestion_control(own)
    asked_by_h2 = next(flow for flow in own.flows if flow.src == "h2")
    assert fixes.longer_timeout(own, [asked_by_h2]) == ("hosts.nodes.h2.nic.timeout=14",)


@pytest.mark.parametrize(("storm_us", "times"), [(1980, "80us 40us"), (2600, "100us 50us")])
def test_watchdog_settings_have_round_times(storm_us: int, times: str, tmp_path: Path) -> None:
    spec = spec_from_text(
        SICK["pause storm"].encode(), source="sick.emu.yml", settings=("time_limit=9ms",)
    )
    run = facts_of(SICK["pause storm"], tmp_path)
    detection, poll = times.split()
    (told,) = fixes.watchdog(replace(run, spec=spec), "leaf1", looks=20, storm_ns=storm_us * 1_000)
    wanted = f"{{detection: {detection}, restoration: {detection}, poll: {poll}}}"
    assert told == f"switches.watchdog={wanted}"
    assert fixes.effective(spec, (told,)) == (told,)


def test_late_answers_are_reported_as_late(tmp_path: Path) -> None:
    """No packet is lost, and still a queue pair gives up."""
    late = "faults: [{at: 20us, delay: {cable: 'h1:leaf1', by: 500us}}]\n"
    text = GIVING_UP.partition("faults:")[0].replace("timeout: 4", "timeout: 1") + late
    run = facts_of(text + "switches: {pfc: on}\n", tmp_path)
    assert run.recording.failed_queue_pairs
    assert "no packet was lost" in diagnoses(run)[0].in_words()


CREDIT_LOOP = """
fabric: ib
topology: {kind: ring, switches: 5, hosts_per_switch: 1}
traffic: [{name: round, pattern: pair, from: h1-h5, to: [h3, h4, h5, h1, h2], size: 2MB}]
subnet: {engine: minhop}
time_limit: 3ms
"""


def test_a_credit_deadlock_is_found_and_cured(tmp_path: Path) -> None:
    """The diagnosis is named as on Ethernet and lists the credit loop.

    The printed routes deliver all.
    """
    sick = facts_of(CREDIT_LOOP, tmp_path / "sick")
    (found,) = diagnoses(sick)
    assert found.pathology.name == "deadlock"
    assert all(port in found.found.evidence for port in sick.recording.deadlocks[0].ports)
    assert found.settings[0] == "subnet.engine=updn"
    cured = facts_of(CREDIT_LOOP, tmp_path / "cured", found.settings)
    assert diagnoses(cured) == []
    assert not cured.unfinished


PERMUTATION = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 4}
switches: SWITCHES
traffic: [{name: mixed, pattern: permutation, among: all, size: 1MB}]
time_limit: 2ms
"""


@pytest.mark.parametrize(
    ("switches", "more"),
    [
        ("{pfc: on, routing: {kind: adaptive}}", ""),
        ("{pfc: on, routing: {kind: flowlet, gap: 100ns}}", ""),
        ("{routing: {kind: adaptive}}", "fabric: ib\n"),
        ("{pfc: on}", "faults: [{reordering: {cable: 'spine1:leaf1', every: 20, by: 2us}}]\n"),
    ],
    ids=["adaptive", "flowlet", "InfiniBand", "a fault"],
)
def test_reordering_is_not_reported_as_loss(switches: str, more: str, tmp_path: Path) -> None:
    """Several causes reorder packets. With the printed settings no packet is retransmitted."""
    name = "reordering taken for loss"
    text = PERMUTATION.replace("SWITCHES", switches) + more
    sick = found_in(text, tmp_path)
    assert list(sick) == [name]
    assert sick[name] == ["hosts.nic.recovery=selective-repeat", "hosts.nic.reordering=256"]
    cured = facts_of(text, tmp_path, tuple(sick[name]))
    assert cured.total("retransmitted_packets") == 0
    assert diagnoses(cured) == []


def test_victims_of_credits_are_reported_with_the_root(tmp_path: Path) -> None:
    """On another lane the victim has more than four times the rate."""
    text = SICK["victims of congestion spreading"]
    run = facts_of(text, tmp_path / "sick")
    (found,) = diagnoses(run)
    assert found.found.evidence.startswith("1 of 6 flows waited for credit")
    assert "leaf1:h1 was 100% busy" in found.found.evidence
    assert found.settings == ("switches.credits.vls=2", "hosts.nodes.h5.nic.sl=1")
    cured = facts_of(text, tmp_path / "cured", found.settings)
    rates = [own.flows[-1].goodput_bps for own in (run, cured)]
    assert rates[1] > 4 * rates[0]


STORM_IN_A_LARGE_BUFFER = (
    TWO_LEAVES
    + """
switches: {preset: nvidia}
traffic:
  - {name: to-h1, pattern: pair, from: h5, to: h1, size: 2MB}
  - {name: others, pattern: pair, from: h6-h7, to: h2-h3, size: 2MB}
faults: [{at: 50us, pause-storm: {host: h1, priority: 3}}]
"""
)


def test_a_storm_hidden_by_a_large_buffer_is_found(tmp_path: Path) -> None:
    """Only flows to the paused host stand still so far."""
    assert "pause storm" in found_in(STORM_IN_A_LARGE_BUFFER, tmp_path)


PASSING_STORM = """
topology:
  kind: leaf-spine
  spines: 1
  leaves: 2
  hosts_per_leaf: 2
  links: {host: {rate: RATE}, fabric: {rate: RATE}}
switches: {pfc: on, buffer: BUFFER}
traffic: [{name: to-h1, pattern: pair, from: h3, to: h1, op: write, size: 1MB, count: COUNT}]
faults: [{at: 20us, for: LENGTH, pause-storm: {host: h1, priority: 3}}]
time_limit: 20ms
"""


@pytest.mark.parametrize(
    ("rate", "buffer", "length", "count"),
    [
        ("400Gbit", "16MB", "2ms", "4"),
        ("400Gbit", "4MB", "100us", "40"),
        ("100Gbit", "32MB", "500us", "40"),
        ("25Gbit", "4MB", "2ms", "2"),
    ],
)
def test_a_storm_that_ends_is_found_with_its_fault(
    rate: str, buffer: str, length: str, count: str, tmp_path: Path
) -> None:
    """All data arrive, but late. The suggested watchdog is fast enough for the storm."""
    text = PASSING_STORM
    for name, value in (("RATE", rate), ("BUFFER", buffer), ("LENGTH", length), ("COUNT", count)):
        text = text.replace(name, value)
    run = facts_of(text, tmp_path / "sick")
    assert not run.unfinished
    (storm,) = diagnoses(run)
    assert storm.pathology.name == "pause storm"
    assert "caused by the fault pause-storm-1 (from 20 us to" in storm.found.evidence
    cured = facts_of(text, tmp_path / "cured", storm.settings)
    assert [one.pathology.name for one in diagnoses(cured)] == [
        "pause storm stopped by the watchdog"
    ]


def test_shares_of_time_exclude_a_tail_of_timer_waits(tmp_path: Path) -> None:
    """A flow that loses every packet lasts until the time limit.

    The storm's share stays the same.
    """
    text = PASSING_STORM.replace("RATE", "100Gbit").replace("BUFFER", "16MB")
    text = text.replace("COUNT", "4").replace("LENGTH", "500us")
    alone = facts_of(text, tmp_path / "alone")
    lost = text.replace(
        "count: 4}", "count: 4}, {name: lost, pattern: pair, from: h4, to: h2, size: 4KB}"
    )
    lost = lost.replace("faults: [", "faults: [{loss: {cable: 'h4:leaf2', probability: 100%}}, ")
    stuck = facts_of(lost, tmp_path / "stuck")
    assert len(stuck.unfinished) == 1
    assert stuck.window_ns[1] < 2 * alone.window_ns[1]
    told = [
        re.search(r"for (\d+)% of the time", diagnoses(run)[0].in_short()) for run in (alone, stuck)
    ]
    shares = [int(share[1]) for share in told if share]
    assert shares == pytest.approx([shares[0]] * 2, abs=2)


def test_shares_of_time_include_a_deadlock(tmp_path: Path) -> None:
    """Ports are held back until the end although no packet moves."""
    run = facts_of(SICK["deadlock"], tmp_path)
    assert run.window_ns[1] == pytest.approx(int(run.recording.series.time_ns[-1]), rel=0.01)


def test_a_storm_without_traffic_is_no_diagnosis(tmp_path: Path) -> None:
    """The storm ends before any flow to its host begins."""
    text = PASSING_STORM.replace("RATE", "100Gbit").replace("BUFFER", "16MB")
    text = text.replace("LENGTH", "100us").replace("COUNT", "2, start: 300us")
    assert found_in(text, tmp_path) == {}


def test_a_storm_that_the_watchdog_ended_needs_no_setting(tmp_path: Path) -> None:
    """The storm is reported. Flows to its host are not called victims of other flows."""
    watchdog = "{detection: 100us, restoration: 100us, poll: 50us}"
    text = SICK["pause storm"].replace("{pfc: on}", f"{{pfc: on, watchdog: {watchdog}}}")
    found = found_in(text, tmp_path)
    assert found["pause storm stopped by the watchdog"] == []
    assert "victim of head-of-line blocking" not in found


def test_harmless_marks_are_no_diagnosis(tmp_path: Path) -> None:
    """All flows finish, without pauses or losses."""
    text = ONE_LEAF.replace("CC", "none").replace("2MB", "9KB")
    marking = "switches: {pfc: on, ecn: {kmin: 2KB, kmax: 8KB}}\n"
    run = facts_of(text + marking, tmp_path)
    assert run.total("ce_marked") > 0
    assert diagnoses(run) == []
