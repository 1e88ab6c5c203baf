"""Sentences of a comparison: only what the runs show, with numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from emu.measure.records import Counters, FailedQueuePair, FlowRecord, JobRecord, StepRecord
from emu.measure.requests import Requests
from emu.report.comparison_tables import comparison_table
from emu.report.findings import findings
from emu.report.phrases import against_the_bound
from emu.report.run_view import RunFacts
from tests.support.synthetic import INCONCLUSIVE, four_fabrics, record, run, spec


def inconclusive(run: RunFacts) -> RunFacts:
    return replace(run, recording=replace(run.recording, fidelity=INCONCLUSIVE))


def test_loss_is_reported_with_its_cost() -> None:
    """The sentence names drops and retransmissions of each run, and the runs without loss."""
    (loss, *_) = findings(four_fabrics())
    assert loss == (
        "Loss: roce-lossy dropped 312 packets and sent 460 again;"
        " roce-pfc, roce-dcqcn and ib dropped none."
    )


def test_losses_of_several_runs_are_a_list() -> None:
    """Semicolons separate the runs, and no "and" joins two of them."""
    lossy, pfc, dcqcn, ib = four_fabrics()
    faulty = with_counts(dcqcn, {"drops_fault": 3, "retransmitted_packets": 4}, {})
    (loss, *_) = findings([lossy, pfc, faulty, ib])
    assert loss == (
        "Loss: roce-lossy dropped 312 packets and sent 460 again; "
        "roce-dcqcn lost 3 packets to faults and sent 4 again; roce-pfc and ib dropped none."
    )


def test_no_loss_is_reported() -> None:
    """The absence of loss is a result."""
    (loss, *_) = findings(four_fabrics()[1:])
    assert loss == "No packet was lost in roce-pfc, roce-dcqcn and ib."


def with_counts(run: RunFacts, totals: Counters, hosts: dict[str, Counters]) -> RunFacts:
    recording = run.recording
    own = replace(recording, totals=recording.totals | totals, hosts=recording.hosts | hosts)
    return replace(run, recording=own)


@pytest.mark.parametrize("why", ["drops_other", "drops_watchdog"])
def test_drops_for_other_reasons_count_as_loss(why: str) -> None:
    """The reasons are a missing route, a watchdog, or the lifetime at the head of a queue."""
    *_, pfc, _, ib = four_fabrics()
    (loss, *_) = findings([pfc, with_counts(ib, {why: 440}, {})])
    assert loss == "Loss: ib dropped 440 packets and sent 0 again; roce-pfc dropped none."


def test_p_key_violations_are_reported() -> None:
    """No switch dropped the packets, and no sentence says that none was lost."""
    *_, pfc, _, ib = four_fabrics()
    strangers: dict[str, Counters] = {
        "h3": {"rx_pkey_violations": 1200},
        "h4": {"rx_pkey_violations": 7},
        "h5": {"rx_pkey_violations": 0},
    }
    loss, refused, *_ = findings([pfc, with_counts(ib, {}, strangers)])
    assert loss == "No switch dropped a packet in roce-pfc and ib."
    assert refused == "In ib, h3 dropped 1,200 and h4 dropped 7 packets for their P_Keys."


def test_marks_of_a_lossy_priority_do_not_explain_pauses() -> None:
    """They do not affect the pauses of other priorities."""
    fabrics = {run.name: run for run in four_fabrics()}
    dcqcn, others = fabrics["roce-dcqcn"], [fabrics["roce-pfc"]]
    assert any("CE marks" in sentence for sentence in findings([dcqcn, *others]))
    counters = {"tx_prio3_pause": 41, "tx_prio1_ecn_marked": 530}
    elsewhere = replace(dcqcn.recording, ports={"leaf1:spine1": counters})
    runs = [replace(dcqcn, recording=elsewhere), *others]
    assert not any("CE marks" in sentence for sentence in findings(runs))


def test_advice_names_the_best_and_every_other_factor() -> None:
    """The second best may be nearly as good, so every run is listed."""
    *_, incast, victim = findings(four_fabrics())
    assert incast == (
        "For traffic like incast, ib and roce-pfc suit best by completion of the last flow: "
        "596 us to 605 us; roce-dcqcn had 660 us, 1.11 times as much; roce-lossy had 900 us, "
        "1.51 times as much."
    )
    first = "For traffic like victim, roce-dcqcn suits best by completion of the last flow: 105 us;"
    assert victim.startswith(first)


def without(run: RunFacts, traffic: str) -> RunFacts:
    flows = tuple(flow for flow in run.flows if flow.traffic != traffic)
    return replace(run, recording=replace(run.recording, flows=flows))


def test_fabrics_with_less_traffic_are_not_ranked() -> None:
    """A smaller workload does not make a fabric better."""
    _, pfc, dcqcn, ib = four_fabrics()
    runs = [pfc, dcqcn, without(ib, "victim")]
    first, *rest = findings(runs)
    differ = "The workloads differ, and only runs with the same workload are ranked"
    assert first == f"{differ}: ib has no victim."
    advice = [sentence for sentence in rest if sentence.startswith("For traffic like")]
    assert len(advice) == 2
    assert not any("ib" in sentence for sentence in advice)
    assert comparison_table(runs).title == "Side by side: the workloads differ"
    assert comparison_table([pfc, dcqcn]).title == "The same workload on each fabric"


def test_different_workload_sizes_are_reported() -> None:
    """The sentence gives bytes and hosts of an entry that differs between runs."""
    _, pfc, dcqcn, _ = four_fabrics()
    small = tuple(
        replace(flow, bytes=1_000) if flow.traffic == "victim" else flow for flow in dcqcn.flows
    )
    other = replace(dcqcn, recording=replace(dcqcn.recording, flows=small))
    first, *rest = findings([pfc, other])
    assert first == (
        "The workloads differ, and only runs with the same workload are ranked: victim is 1 MB "
        "among 2 hosts in roce-pfc and 1 KB among 2 hosts in roce-dcqcn."
    )
    assert not any(sentence.startswith(("For traffic like", "With ")) for sentence in rest)


def test_pfc_without_any_pause_is_reported() -> None:
    """Such a comparison shows nothing about pauses, so no sentence compares CNPs with pauses."""
    _, pfc, dcqcn, _ = four_fabrics()
    with_it = [replace(run, spec=spec(switches={"pfc": "on"})) for run in (pfc, dcqcn)]
    said = findings([with_counts(run, {"pause_frames": 0}, {}) for run in with_it])
    assert "PFC had no part in roce-pfc and roce-dcqcn: no pause frame was sent." in said
    assert not any("CNP" in sentence for sentence in said)
    assert not any("PFC had no part" in sentence for sentence in findings(with_it))


def test_alike_fabrics_are_not_ranked() -> None:
    """Two runs differ by less than two percent."""
    fabrics = {run.name: run for run in four_fabrics()}
    *_, incast, _ = findings([fabrics["roce-pfc"], fabrics["ib"]])
    assert incast == (
        "For traffic like incast, ib and roce-pfc are alike by completion of the last flow: "
        "596 us to 605 us."
    )


def test_nothing_is_concluded_from_an_inconclusive_run() -> None:
    """The first sentence names the run, and no other mentions it."""
    lossy, *others = four_fabrics()
    caveat, *rest = findings([inconclusive(lossy), *others])
    assert caveat == ("The machine did not keep up with roce-lossy; nothing is concluded from it.")
    assert not any("roce-lossy" in sentence for sentence in rest)


def test_inconclusive_runs_alone_give_only_the_caveat() -> None:
    """No conclusion is drawn."""
    assert len(findings([inconclusive(run) for run in four_fabrics()])) == 1


def with_ends(run: RunFacts, ends_ns: dict[str, int | None]) -> RunFacts:
    flows = tuple(
        replace(flow, end_ns=ends_ns[flow.name], completed=ends_ns[flow.name] is not None)
        if flow.name in ends_ns
        else flow
        for flow in run.flows
    )
    return replace(run, recording=replace(run.recording, flows=flows))


def test_an_unfinished_fabric_is_named_and_not_ranked() -> None:
    """The first sentence names the fabric, and so does the ranking."""
    _, pfc, dcqcn, ib = four_fabrics()
    first, *_, victim = findings([pfc, with_ends(dcqcn, {"victim": None}), ib])
    assert first == "roce-dcqcn did not finish 1 of 8 flows."
    assert victim.startswith("For traffic like victim, ib suits best by completion")
    assert victim.endswith("; not finished: roce-dcqcn (1 of 1 flow unfinished).")


def test_a_flow_that_lacks_only_its_last_ack_is_noted() -> None:
    lossy, pfc, *_ = four_fabrics()
    first, second, *_ = lossy.flows

    def left(*flows: FlowRecord) -> str:
        cut = [replace(own, completed=False, delivered_bytes=own.bytes) for own in flows]
        rest = [own for own in lossy.flows if own not in flows]
        recording = replace(lossy.recording, flows=(*cut, *rest))
        return findings([replace(lossy, recording=recording), pfc])[0]

    told = "all of its bytes arrived, but not the last acknowledgement."
    assert left(first) == f"roce-lossy did not finish 1 of 8 flows; {told}"
    told = "all bytes of 2 of them arrived, but not the last acknowledgement."
    assert left(first, second) == f"roce-lossy did not finish 2 of 8 flows; {told}"


def test_fecn_and_becn_have_rows_if_they_occur() -> None:
    _, pfc, _, ib = four_fabrics()
    labels = [row[0].text for row in comparison_table([pfc, ib]).rows]
    assert "packets marked FECN" not in labels
    ports, hosts = (
        {name: dict(own) for name, own in of.items()}
        for of in (ib.recording.ports, ib.recording.hosts)
    )
    next(iter(ports.values()))["fecn_marked"] = 305
    hosts["h1"] = {**hosts.get("h1", {}), "rp_becn_received": 7}
    marked = replace(ib, recording=replace(ib.recording, ports=ports, hosts=hosts))
    rows = {
        row[0].text: [cell.text for cell in row[1:]] for row in comparison_table([pfc, marked]).rows
    }
    assert rows["packets marked FECN"] == ["-", "305"]
    assert rows["ACKs with BECN"] == ["0", "7"]


def test_queue_pairs_that_gave_up_are_counted() -> None:
    """The sentence gives their number beside that of unfinished flows."""
    _, pfc, dcqcn, _ = four_fabrics()
    failed = (FailedQueuePair("victim", "h5", "h3", 9, "IBV_WC_RETRY_EXC_ERR"),)
    stuck = with_ends(dcqcn, {"victim": None})
    stuck = replace(stuck, recording=replace(stuck.recording, failed_queue_pairs=failed))
    first, *_ = findings([pfc, stuck])
    assert first == "roce-dcqcn did not finish 1 of 8 flows: 1 queue pair gave up."


def test_a_fabric_compared_with_itself_is_alike() -> None:
    """No sentence says `1 times as much`."""
    pfc = four_fabrics()[1]
    said = findings([pfc, replace(pfc, name="same")])
    assert "For traffic like victim, roce-pfc and same are alike by" in said[-1]
    assert not any("times" in sentence for sentence in said)


def test_more_pauses_are_called_more() -> None:
    """CNPs do not always mean fewer pauses."""
    _, pfc, dcqcn, _ = four_fabrics()
    storm = with_counts(dcqcn, {"pause_frames": 352}, {})
    few = with_counts(pfc, {"pause_frames": 25}, {})
    (marking,) = (sentence for sentence in findings([few, storm]) if "CNP" in sentence)
    assert marking == (
        "With 530 CE marks and 88 CNPs, roce-dcqcn had 352 pause frames: more than roce-pfc (25) "
        "without any CNP."
    )


def test_a_bound_beside_a_step_excludes_compute_time() -> None:
    """A step above the bound is not necessarily the fabric's fault."""
    _, pfc, dcqcn, _ = four_fabrics()
    step = StepRecord("incast", 0, 600_000, 400_000, {"data": 7_000_000})
    trained = replace(pfc, recording=replace(pfc.recording, steps=(step,)))
    told = "The bound counts only bytes on cables. It leaves out the work of a step"
    assert told in against_the_bound(trained)
    assert told in comparison_table([dcqcn, trained]).note
    assert comparison_table([pfc, dcqcn]).note == ""
    assert told not in against_the_bound(pfc)


def test_a_table_has_rows_for_entries_of_any_fabric() -> None:
    """A step has no goodput because its flows wait for compute time."""
    _, pfc, dcqcn, _ = four_fabrics()
    step = StepRecord("victim", 0, 105_000, 50_000, {"data": 1_000_000})
    job = JobRecord("incast", "all-reduce", "ring", 8, 10**6, 1.0, 0, 660_000, 0)
    recording = replace(dcqcn.recording, steps=(step,), jobs=(job,))
    rows = comparison_table([pfc, replace(dcqcn, recording=recording)]).rows
    labels = [row[0].text for row in rows]
    assert {"victim: step", "victim: exposed communication", "incast: busbw"} <= set(labels)
    assert "victim: median goodput" not in labels
    assert "incast: median goodput" in labels


def test_losses_by_faults_count_as_loss() -> None:
    """No switch dropped these packets."""
    _, pfc, dcqcn, _ = four_fabrics()
    (loss, *_) = findings([pfc, with_counts(dcqcn, {"drops_fault": 9}, {})])
    assert loss == (
        "Loss: roce-dcqcn lost 9 packets to faults and sent 0 again; roce-pfc dropped none."
    )


LOAD = {
    "topology": {"kind": "leaf-spine", "spines": 1, "leaves": 1, "hosts_per_leaf": 2},
    "traffic": [
        {
            "name": "load",
            "pattern": "background",
            "among": ["h1", "h2"],
            "sizes": "websearch",
            "rate": "1Gbit",
            "count": 3,
        }
    ],
}


def loaded(name: str, last_ns: int, small: float, large: float) -> RunFacts:
    """A run of ten small and ten large messages, the last of which ends at `last_ns`."""
    scenario = spec(**LOAD, verify=[])
    alone_ns = np.full(20, 1_000)
    requests = Requests(
        ("load",),
        np.zeros(20, np.int64),
        np.zeros(20, np.int64),
        (np.array([small] * 10 + [large] * 10) * alone_ns).astype(np.int64),
        carries=np.array([1_000] * 10 + [10**6] * 10),
        alone_ns=alone_ns,
    )
    ends = {"load.h1-h2": last_ns, "load.h2-h1": last_ns}
    return run(record(scenario, ends_ns=ends, requests=requests), scenario, name)


def test_open_loop_load_is_ranked_by_fct_slowdown() -> None:
    """The last completion is only that of the largest late message."""
    early = loaded("early", 500_000, small=9.0, large=20.0)
    late = loaded("late", 900_000, small=12.0, large=4.0)
    (*_, advice) = findings([early, late])
    assert advice == (
        "For traffic like load, late suits best by FCT slowdown, 99 % of messages: 12.00; early "
        "had 20.00, 1.67 times as much; for the smallest messages (up to 1 KB), early was best: "
        "50 % at most 9.00, 99 % at most 9.00 (n 10); for the largest messages (up to 1 MB), "
        "late was best: 50 % at most 4.00, 99 % at most 4.00 (n 10)."
    )


def test_open_loop_load_has_no_goodput() -> None:
    """Its flows wait for messages on any fabric."""
    loads = [loaded(name, 500_000, small=9.0, large=20.0) for name in ("one", "other")]
    labels = [row[0].text for row in comparison_table(loads).rows]
    assert "load: FCT slowdown, 99 %" in labels
    assert "load: median goodput" not in labels


def test_a_job_is_ranked_by_its_iteration() -> None:
    """Its flows may be over before the last values are reduced."""
    _, pfc, dcqcn, _ = four_fabrics()
    job = JobRecord("victim", "all-reduce", "ring", 2, 10**6, 1.0, 0, 700_000, 0)
    slow, fast = (
        replace(run, recording=replace(run.recording, jobs=(replace(job, end_ns=end_ns),)))
        for run, end_ns in ((pfc, 700_000), (dcqcn, 500_000))
    )
    (*_, advice) = findings([slow, fast])
    assert advice == (
        "For traffic like victim, roce-dcqcn suits best by iteration time: 500 us; roce-pfc had "
        "700 us, 1.4 times as much."
    )


def test_pauses_are_compared_among_pfc_fabrics() -> None:
    """A fabric without PFC never pauses."""
    _, pfc, dcqcn, _ = four_fabrics()
    off = pfc.spec.model_copy(
        update={"switches": pfc.spec.switches.model_copy(update={"pfc": None})}
    )
    lossy = replace(with_counts(pfc, {"pause_frames": 0}, {}), name="lossy", spec=off)
    (marking,) = (sentence for sentence in findings([lossy, pfc, dcqcn]) if "CNP" in sentence)
    assert "roce-pfc" in marking
    assert "lossy" not in marking
    assert not any("CNP" in sentence for sentence in findings([lossy, dcqcn]))
