"""Benchmarks of small specs that really run: figures against closed forms and against the runs'
own records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from emu.bmwg.catalogue import KPIS
from emu.errors import SpecError, UsageError

ROOT = Path(__file__).parents[2]
RATE_BPS = 100_000_000_000
STAR = {"kind": "leaf-spine", "spines": 1, "leaves": 1, "hosts_per_leaf": 8}
CLOS = {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 4}
LINKS = {"host": {"rate": "100Gbit", "delay": "100ns"}, "fabric": {"rate": "100Gbit"}}


def keys(topology: dict[str, Any], traffic: list[dict[str, Any]], **more: Any) -> emu.Spec:
    base = {"topology": {**topology, "links": LINKS}, "switches": {"pfc": {}}, "traffic": traffic}
    return emu.Spec(**{**base, **more})


def report(spec: emu.Spec | Path, **options: Any) -> emu.BenchReport:
    return emu.bench_report(spec, clock="virtual", **options)


@pytest.fixture(scope="module")
def ring() -> emu.BenchReport:
    entry = {
        "name": "sum",
        "pattern": "all-reduce",
        "among": "all",
        "size": "8MB",
        "chunk": "64KB",
    }
    return report(keys(STAR, [entry]))


def test_a_ring_on_one_switch_is_near_its_roofline(ring: emu.BenchReport) -> None:
    """8 MB x 1.75 at 100 Gbit/s are 1.12 ms. Headers add 82 bytes to 4096, and the steps of the
    ring some latency."""
    assert ring.mean("roofline_jct", "sum") == pytest.approx(1_120_000)
    ratio = ring.mean("jct_ratio", "sum")
    assert 4178 / 4096 <= ratio <= 1.05
    assert ring.mean("jct", "sum") == pytest.approx(ratio * 1_120_000)


def test_bus_bandwidth_and_jct_ratio_are_inverse_for_a_ring(ring: emu.BenchReport) -> None:
    """Both compare S x factor with the NIC rate."""
    share = ring.mean("busbw_of_nic_rate", "sum")
    assert share == pytest.approx(100 / ring.mean("jct_ratio", "sum"))
    assert ring.mean("busbw", "sum") == pytest.approx(share / 100 * RATE_BPS / 8)


def test_goodput_of_a_ring_is_what_all_ranks_send(ring: emu.BenchReport) -> None:
    """Each of 8 ranks sends S x 1.75."""
    sent_bits = 8 * 8_000_000 * 1.75 * 8
    took_s = ring.mean("jct", "sum") / 1e9
    assert ring.mean("fabric_goodput") == pytest.approx(sent_bits / took_s, rel=1e-3)


def test_one_leaf_has_no_parallel_links(ring: emu.BenchReport) -> None:
    with pytest.raises(UsageError, match="no switch has parallel links"):
        ring.mean("jfi_links")


def test_the_roofline_of_data_parallel_training_has_the_gradients() -> None:
    """Each of 4 replicas sends 2 x 3/4 of its gradients, over the NIC alone."""
    entry = {
        "name": "step",
        "pattern": "training-step",
        "among": "h1-h4",
        "layers": 2,
        "hidden": 256,
        "sequence": 128,
        "tflops": 100,
    }
    found = report(keys(STAR, [entry], payload="elided"))
    (step,) = emu.load(found.folder / "run")._facts.recording.steps
    each_sends = step.bytes_for["data"] / 4
    expected = step.work_alone_ns + each_sends * 8e9 / RATE_BPS
    assert found.mean("roofline_jct", "step") == pytest.approx(expected)
    assert found.mean("jct", "step") == step.took_ns


def test_a_layer_of_experts_has_a_dispatch_payload() -> None:
    """8 ranks with 64 tokens each, 2 experts for each token of 1 KiB."""
    entry = {
        "name": "experts",
        "pattern": "moe",
        "among": "all",
        "tokens": 64,
        "top_k": 2,
        "token": "1KiB",
    }
    assert report(keys(STAR, [entry])).mean("t_dispatch", "experts") == 64 * 2 * 1024


@pytest.fixture(scope="module")
def two_groups() -> emu.BenchReport:
    """Two incasts with one receiver, each of which fills its link by itself."""
    first = {"name": "one", "pattern": "incast", "from": "h2-h4", "to": "h1", "size": "1MB"}
    other = {"name": "two", "pattern": "incast", "from": "h5-h7", "to": "h1", "size": "1MB"}
    return report(keys(STAR, [first, other]), interference=True)


def test_groups_that_share_a_link_take_twice_as_long(two_groups: emu.BenchReport) -> None:
    for name in ("one", "two"):
        assert two_groups.mean("contention_penalty", name) == pytest.approx(2, rel=0.05)


def test_interference_runs_each_group_alone(two_groups: emu.BenchReport) -> None:
    alone = emu.load(two_groups.folder / "alone-one")
    assert {*alone.flows["traffic"]} == {"one"}
    assert {"run", "alone-one", "alone-two"} <= {p.name for p in two_groups.folder.iterdir()}


def test_interference_is_measured_only_if_asked_for() -> None:
    spec = keys(
        STAR,
        [
            {"name": n, "pattern": "pair", "from": f, "to": t, "size": "64KB"}
            for n, f, t in (("a", "h1", "h2"), ("b", "h3", "h4"))
        ],
    )
    with pytest.raises(UsageError, match="--interference"):
        report(spec).mean("contention_penalty")


CUT = {"at": "40us", "link-down": {"cable": "leaf1:spine1"}}


@pytest.fixture(scope="module")
def cut() -> emu.BenchReport:
    entry = {"name": "write", "pattern": "pair", "from": "leaf1", "to": "leaf2", "size": "2MB"}
    switches = {"pfc": {}, "routing": {"convergence": "20us"}}
    hosts = {"nic": {"timeout": 4}}
    return report(keys(CLOS, [entry], faults=[CUT], switches=switches, hosts=hosts))


def test_routes_change_after_the_convergence_that_is_set(cut: emu.BenchReport) -> None:
    assert cut.mean("time_to_redistribute", "link-down-1") == 20_000


def test_lost_packets_are_those_of_the_fault(cut: emu.BenchReport) -> None:
    (fault,) = emu.load(cut.folder / "run")._facts.recording.faults
    assert cut.mean("packets_lost", "link-down-1") == fault.packets_dropped > 0


def test_packets_are_lost_until_routes_change(cut: emu.BenchReport) -> None:
    assert cut.mean("loss_duration", "link-down-1") == 20_000


def test_a_flow_is_out_for_longer_than_packets_are_lost(cut: emu.BenchReport) -> None:
    """The figure is the longest pause in the deliveries of any flow that sent packets again."""
    run = emu.load(cut.folder / "run")
    hit = run.flows.index[run.flows["retransmitted_packets"] > 0]
    delivered = run.series("delivered")
    pauses = [np.diff(delivered.index[1:][np.diff(delivered[flow]) > 0]).max() for flow in hit]
    assert cut.mean("flow_outage", "link-down-1") == max(pauses) > 20_000


def test_overhead_is_the_difference_from_a_run_without_the_fault(cut: emu.BenchReport) -> None:
    ends = [
        emu.load(cut.folder / name).flows["end_ns"].max() for name in ("run", "without-lost-links")
    ]
    assert cut.mean("failover_jct_overhead", "write") == ends[0] - ends[1] > 0


def test_a_host_without_another_path_has_no_time_to_redistribute() -> None:
    entry = {"name": "write", "pattern": "pair", "from": "h1", "to": "h2", "size": "1MB"}
    fault = {"at": "20us", "for": "30us", "link-down": {"cable": "h2:leaf1"}}
    spec = keys(STAR, [entry], faults=[fault], hosts={"nic": {"timeout": 4}})
    with pytest.raises(UsageError, match="no other path"):
        report(spec).mean("time_to_redistribute", "link-down-1")


SPECS = ("incast", "storage", "moe", "results/pulled-spine", "results/pfc-deadlock")


@pytest.mark.parametrize("name", SPECS)
def test_every_kpi_has_a_figure_or_a_reason(name: str) -> None:
    found = report(ROOT / f"topologies/{name}.emu.yml")
    places = [*zip(found.figures["kpi"], found.figures["of"], strict=True)]
    without = [*zip(found.undefined["kpi"], found.undefined["of"], strict=True)]
    assert {kpi for kpi, _ in (*places, *without)} == set(KPIS)
    assert len({*places, *without}) == len(places) + len(without)
    assert found.undefined["reason"].str.len().min() > 0
    assert not found.figures["mean"].isna().any()


def test_iterations_have_mean_interval_and_variation() -> None:
    found = report(ROOT / "topologies/incast.emu.yml", seeds=3)
    row = next(
        own
        for own in found.document["figures"]
        if (own["kpi"], own["of"]) == ("jfi_flows", "incast")
    )
    assert [*row["values"]] == ["7", "8", "9"]
    assert row["low"] <= row["mean"] == pytest.approx(sum(row["values"].values()) / 3)
    assert row["cv"] > 0
    assert {one["seed"] for one in found.document["iterations"]} == {7, 8, 9}


def test_ports_that_did_nothing_with_a_seed_count_as_0() -> None:
    found = report(ROOT / "topologies/incast.emu.yml", seeds=2).document["figures"]
    marks = [own["values"] for own in found if own["kpi"] == "ecn_marking_ratio"]
    assert all([*values] == ["7", "8"] for values in marks)
    assert any(0 in values.values() for values in marks)


def test_a_spec_without_chance_has_no_variation(ring: emu.BenchReport) -> None:
    entry = {"name": "pair", "pattern": "pair", "from": "h1", "to": "h2", "size": "256KB"}
    found = report(keys(STAR, [entry]), seeds=2)
    assert found.figures["cv"].max() == 0
    assert "nothing in this spec is random" in str(found)


def test_deviations_say_how_much_shorter_the_trial_was(ring: emu.BenchReport) -> None:
    (iteration,) = ring.document["iterations"]
    assert iteration["duration_ns"] == ring.mean("jct", "sum")
    assert ring.document["wanted_trial_ns"] == 60_000_000_000
    assert any("60 s or more" in sentence for sentence in ring.document["deviations"])


def test_infiniband_is_out_of_the_drafts_scope() -> None:
    found = report(ROOT / "topologies/storage.emu.yml", set={"fabric": "ib"})
    assert found.document["in_scope"] is False
    assert "leave InfiniBand out of their scope" in str(found)
    assert not {"pfc_pause_count", "ecn_marking_ratio"} & {*found.figures["kpi"]}


@pytest.mark.parametrize("seeds", [0, 1.5, "3", True, 1001])
def test_a_wrong_number_of_seeds_runs_nothing(seeds: Any) -> None:
    with pytest.raises(UsageError, match="seeds"):
        report(ROOT / "topologies/pair.emu.yml", seeds=seeds)


def test_an_entry_that_cannot_run_alone_starts_nothing(tmp_path: Path) -> None:
    """A pinned path that names a flow of the other entry."""
    entries = [
        {"name": name, "pattern": "pair", "from": f, "to": t, "size": "64KB"}
        for name, f, t in (("a", "h1", "h5"), ("b", "h2", "h6"))
    ]
    routing = {"kind": "pinned", "paths": {"a": "spine1"}}
    spec = keys(CLOS, entries, switches={"routing": routing})
    with pytest.raises(SpecError, match="b alone"):
        report(spec, interference=True, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_prompt_waits_for_its_cache() -> None:
    """The cache of 128 tokens has 2 x 32 x 8 x 128 x 128 elements of 2 bytes. It is sent when the
    prefill of 128 us is over, in packets of 4096 bytes with 82 of headers, and the first token
    takes 10 us more."""
    chat = {
        "name": "chat",
        "pattern": "inference",
        "from": "h1",
        "to": "h2",
        "model": "llama-3-8b",
        "prompts": 1,
        "arrivals": 1000,
        "tokens": 128,
        "transfer": "whole",
        "token_time": "1us",
        "first_token": "10us",
    }
    found = report(keys(STAR, [chat]))
    assert found.mean("s_kv", "chat") == 16_777_216
    assert found.mean("kv_wait", "chat") == found.mean("kv_transfer", "chat")
    wire_ns = 16_777_216 * 8e9 / RATE_BPS * 4178 / 4096
    assert found.mean("kv_wait", "chat") == pytest.approx(wire_ns, rel=0.005)
    assert found.mean("ttft", "chat") == found.mean("kv_wait", "chat") + 138_000
    assert found.mean("latency_p99", "chat") == found.mean("ttft", "chat")
