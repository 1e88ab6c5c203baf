"""A fabric in any number of parts, on any number of threads, gives the same bytes as in one piece:
records of flows, counters, samples, faults, deadlocks, captures, and the end of the run."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.bindings.partition import WHOLE, Partition, partition
from emu.errors import UsageError
from emu.measure.observation import Observation
from emu.measure.raw_counters import CounterTable
from emu.runtime import runner_on
from emu.runtime.virtual import STEP_NS, VirtualFabric
from emu.spec.model import Spec, load_spec
from emu.wire.raw import RAW_RECORD, whole_records
from tests.runtime.test_conservation import specs as losing_fabrics
from tests.runtime.test_properties import specs as pausing_fabrics
from tests.support.limits import examples
from tests.support.small_fabrics import INCAST, chain, shortest_paths, spec_of
from topologies.graph import Topology
from traffic.graph import Flow, OperationGraph
from traffic.verb import Verb

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
CUTS = [(1, 2), (2, 2), (3, 3), (1, 8), (3, 8)]
"""Threads, and parts."""
LIMIT_NS = 2_000_000
"""Emulated time of a run at most."""
SHIPPED = sorted(
    path
    for path in TOPOLOGIES.rglob("*.emu.yml")
    if path.name not in {"fat-tree-1024.emu.yml", "tcp-baseline.emu.yml"}
)
DROPPING = """
fabric: roce
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}
switches: {buffer: 300KB, queue_limit: 40KB}
hosts: {nic: {timeout: 3, retry_count: 1}}
traffic:
  - {name: incast, pattern: incast, from: h2-h8, to: h1, size: 400KB, priority: 0}
  - {name: sum, pattern: all-reduce, algorithm: ring, among: h1-h8, size: 80KB, priority: 0}
  - {name: ud, pattern: permutation, among: h1-h8, size: 4KB, transport: ud, op: send, priority: 0}
"""
"""Messages that fail, so that others are cancelled, and datagrams that are lost."""

SHARED = """
fabric: roce
payload: elided
topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 2}
traffic:
  - {name: all, pattern: all-to-all, among: h1-h8, size: 4KB}
"""


def outcome(spec: Spec, topology: Topology, threads: int = 1, parts: int = 1) -> dict[str, object]:
    """Everything that a run gives, by name. Arrays and captures are hashed."""
    subnet = None
    if spec.fabric_kind.has_subnet_manager:
        subnet = shortest_paths(topology)
    with VirtualFabric(spec, topology, subnet, threads=threads, parts=parts) as run:
        run.start()
        captured = b"".join(_captured(run, min(spec.time_limit_ps // 1000, LIMIT_NS)))
        seen = run.observe()
        samples = vars(seen.samples)
        return {
            "end": run.now_ns,
            "flows": seen.flows,
            "jobs": seen.jobs,
            "steps": seen.steps,
            "requests": _hash(seen.requests.end_ns) if seen.requests else None,
            "nics": seen.nics,
            "ports": _hash(_cells(seen)),
            "scale_up": repr(seen.scale_up),
            "faults": seen.faults,
            "deadlocks": seen.deadlocks,
            "failed": seen.failed_queue_pairs,
            "captures": _by_port(captured),
            "missed": seen.captures_missed,
            "frames": lib.fabric_frames_in_use(run.fabric.core),
            **{name: _hash(samples[name]) for name in samples if name != "ports"},
        }


def _cells(seen: Observation) -> NDArray[np.int64]:
    assert isinstance(seen.ports, CounterTable)
    return seen.ports.cells


def _captured(run: VirtualFabric, limit_ns: int) -> Iterator[bytes]:
    while not run.finished and run.now_ns < limit_ns:
        run.run_steps(min(run.now_ns + 50 * STEP_NS, limit_ns))
        yield run.fabric.captured()


def _hash(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _by_port(captured: bytes) -> dict[int, str]:
    """Records of one port have an order; those of several have none."""
    files: defaultdict[int, Any] = defaultdict(hashlib.sha256)
    for record in whole_records(captured):
        files[RAW_RECORD.unpack_from(record)[2]].update(record)
    return {port: file.hexdigest() for port, file in sorted(files.items())}


def expect_same_in_parts(spec: Spec, cuts: list[tuple[int, int]] = CUTS) -> None:
    topology = spec.topology.build()
    whole = outcome(spec, topology)
    for threads, parts in cuts:
        assert outcome(spec, topology, threads=threads, parts=parts) == whole, (threads, parts)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name.removesuffix(".emu.yml"))
def test_shipped_specs_in_parts(path: Path) -> None:
    """Every variant, in an uneven number of parts; without payloads, which parts do not share."""
    spec = load_spec(path)
    if not spec.capture and spec.payload == "real":
        spec = load_spec(path, ["payload=elided"])
    for variant in spec.variants().values() or [spec]:
        if not variant.streams().flows:
            expect_same_in_parts(variant, [(2, 3)])


@examples(25)
@given(losing_fabrics())
def test_random_fabrics_that_lose_packets_in_parts(spec: Spec) -> None:
    expect_same_in_parts(spec)


@examples(25)
@given(pausing_fabrics())
def test_random_fabrics_that_pause_in_parts(spec: Spec) -> None:
    expect_same_in_parts(spec)


def test_failures_and_cancellations_in_parts() -> None:
    spec = spec_of(DROPPING)
    whole = outcome(spec, spec.topology.build())
    assert whole["failed"], "the spec is there to make messages fail"
    expect_same_in_parts(spec)


def test_all_frames_come_back_to_their_pools() -> None:
    spec = spec_of(INCAST)
    with VirtualFabric(spec, spec.topology.build(), threads=2, parts=3) as run:
        run.start()
        run.run_until(20_000)
        assert lib.fabric_frames_in_use(run.fabric.core) > 0
        while not run.finished:
            run.run_steps(run.now_ns + STEP_NS)
        run.run_until(run.now_ns + 100_000)
        assert lib.fabric_frames_in_use(run.fabric.core) == 0


def test_frame_put_on_a_cable_that_is_cut_arrives() -> None:
    spec = spec_of(chain(2) + "switches: {pfc: {priorities: [3]}}\n")
    pause = bytes.fromhex("0180c2000001 020000000001 8808 0101 0008" + 8 * "ffff")
    with VirtualFabric(spec, spec.topology.build(), parts=3) as run:
        run.start()
        run.run_until(10_000)
        run.inject("h2:s1", pause)
        run.run_until(12_000)
        assert run.port("s1:h2").paused[3]


# ---- where a fabric is cut ----------------------------------------------------------------


def cut(text: str, parts: int) -> Partition:
    spec = spec_of(text)
    return partition(spec, spec.topology.build(), spec.workload(), parts, threads=2)


FAT_TREE = """
topology: {kind: fat-tree, k: 4, links: {core: {length: 50m}}}
traffic: [{name: all, pattern: permutation, among: h1-h16, size: 4KB}]
"""


def test_pods_of_a_fat_tree_stay_whole() -> None:
    """The shortest cable that is cut leads to a core: its delay is the lookahead."""
    spec = spec_of(FAT_TREE)
    topology, found = spec.topology.build(), cut(FAT_TREE, 4)
    assert found.parts == 4
    for cable in topology.cables:
        if found.part_of(cable.a.node) != found.part_of(cable.b.node):
            assert "core" in {topology.switch[end.node].role for end in (cable.a, cable.b)}
    with VirtualFabric(spec, topology, threads=2, parts=4) as run:
        run.start()
        run.run_until(20_000)
        balance = lib.fabric_balance(run.fabric.core)
        assert balance.lookahead_ps >= 250_000
        assert balance.windows > 0
        events = ffi.unpack(balance.events, found.parts)
        assert min(events) > 0.5 * max(events)


@pytest.mark.parametrize(
    "more",
    [
        "faults: [{at: 1us, loss: {cable: 'edge1:agg1', probability: 1%}}]",
        "faults: [{at: 1us, link-down: {cable: 'edge1:agg1'}}]",
    ],
)
def test_ends_of_a_faulty_cable_share_a_part(more: str) -> None:
    found = cut(FAT_TREE + more, 16)
    assert found.parts > 4
    assert found.part_of("edge1") == found.part_of("agg1")


def test_host_that_waits_for_others_operations_shares_their_part() -> None:
    """h3 may send when h1 has sent to h2. h3 takes no part in that message."""
    spec = spec_of("topology: {kind: leaf-spine, leaves: 4, spines: 1, hosts_per_leaf: 1}")
    pairs = [("h1", "h2"), ("h3", "h4")]
    graph = OperationGraph(
        flows=tuple(
            Flow(f"{src}-{dst}", "pairs", src, dst, Verb.WRITE, range(place, place + 1))
            for place, (src, dst) in enumerate(pairs)
        ),
        size_bytes=np.array([1000, 1000]),
        not_before_ns=np.array([0, 0]),
        earlier=np.array([0]),
        later=np.array([1]),
    )
    found = partition(spec, spec.topology.build(), graph, 5, threads=2)
    assert found.part_of("h1") == found.part_of("h3") != found.part_of("h2")


def test_switch_between_two_hosts_joins_one_of_them() -> None:
    assert cut(chain(2), 8).parts == 2
    assert cut(chain(2), 1) is WHOLE


def test_threads_are_for_the_virtual_clock_alone() -> None:
    with pytest.raises(UsageError, match="--threads"):
        runner_on("real").with_threads(2)


def test_a_process_builds_its_share_of_a_fabric() -> None:
    """Of what other processes run there are the ports at the far ends of cut cables, and operations
    to or from own hosts."""
    spec = spec_of(SHARED)
    topology = spec.topology.build()
    whole = partition(spec, topology, spec.workload(), 2, 1)
    with VirtualFabric(spec, topology, cut=replace(whole, own=range(1))) as run:
        core, workload = run.fabric.core, run.endpoints.workload
        assert lib.fabric_take_parts(core, [0, 1, 2], 2, 0, 1, workload)
        own = {node.name for node in topology.nodes if whole.part_of(node.name) == 0}
        assert set(run.fabric.switches) == own & set(topology.switch)
        runs = {port.node for port, at in run.fabric.index.items() if lib.fabric_runs(core, at)}
        assert runs == own
        records, flow_of = run.endpoints.records(), spec.workload().flow_of
        for flow, pending in zip(flow_of.tolist(), records["status"].tolist(), strict=True):
            ends = {spec.workload().flows[flow].src, spec.workload().flows[flow].dst}
            assert (pending == lib.STATUS_PENDING) == bool(ends & own)
