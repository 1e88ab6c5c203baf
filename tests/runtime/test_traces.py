"""Traces on the virtual clock: a run plays the trace that the spec names, with its work and
waiting."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from emu.errors import SpecError
from emu.spec.load import load_spec
from tests.support.chakra_writer import ALL_REDUCE, COLL, COMP, node, write
from tests.support.small_fabrics import finish, started

SPEC = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 3}
traffic: [{name: relay, pattern: trace, format: goal, file: relay.goal, among: all}]
"""
RELAY = """
num_ranks 3
rank 0 {
work: calc 1000
out: send 8192b to 1 tag 5
out requires work
}
rank 1 {
in: recv 8192b from 0 tag 5
on: send 4096b to 2
on requires in
}
rank 2 {
in: recv 4096b from 1
work: calc 500
work requires in
}
"""


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    """Writes a spec, and beside it the trace that it names."""
    (tmp_path / "relay.goal").write_text(RELAY)
    path = tmp_path / "relay.emu.yml"
    path.write_text(SPEC)
    return path


def test_relay_forwards_after_it_received_everything(spec_file: Path) -> None:
    """The first message leaves after a microsecond of work, the second when the first is
    delivered."""
    with started(load_spec(spec_file)) as run:
        flows = finish(run).flows
    first, second = flows["relay.h1-h2"], flows["relay.h2-h3"]
    assert first.start_ns == 1_000
    assert second.start_ns == first.end_ns
    assert first.completed
    assert second.completed


def test_changed_trace_is_read_again(spec_file: Path) -> None:
    """By the next load of the spec; a spec that was loaded before does not change."""
    before = load_spec(spec_file)
    trace = spec_file.with_name("relay.goal")
    trace.write_text(RELAY.replace("8192b", "9192b"))
    after = load_spec(spec_file)
    sizes = [spec.workload().bytes_between("h1", "h2") for spec in (before, after)]
    assert sizes == [8192, 9192]


def test_trace_needs_as_many_hosts_as_ranks(spec_file: Path) -> None:
    """Named or from a group; the error gives the line."""
    with pytest.raises(SpecError, match=r"relay\.emu\.yml:3:.*the trace has 3 ranks, but among"):
        load_spec(spec_file, ["topology.hosts_per_leaf=4"])


CHAKRA = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 4}
traffic: [{name: job, pattern: trace, format: chakra, file: job, groups: groups.json, among: all}]
"""


@pytest.mark.parametrize("groups", [{"0": [0, 1], "1": [2, 3]}, {"0": [0, 1, 2, 3]}])
def test_collectives_run_within_their_process_group(
    groups: dict[str, list[int]], tmp_path: Path
) -> None:
    """Two rings of two, or one of all four; each rank sends what its own ring requires."""
    (tmp_path / "groups.json").write_text(json.dumps(groups))
    attributes = {"comm_type": ALL_REDUCE, "comm_size": 400_000}
    names = [next(name for name, own in groups.items() if rank in own) for rank in range(4)]
    write(tmp_path, *([node(1, COLL, {**attributes, "pg_name": name})] for name in names))
    (tmp_path / "job.emu.yml").write_text(CHAKRA)
    with started(load_spec(tmp_path / "job.emu.yml")) as run:
        flows = finish(run).flows
    ranks = len(groups["0"])
    assert {flow.completed for flow in flows.values()} == {True}
    assert {flow.bytes for flow in flows.values()} == {2 * (ranks - 1) * 400_000 // ranks}
    assert len(flows) == 4


def test_missing_groups_file_is_named(tmp_path: Path) -> None:
    """Instead of the trace that needs it; GOAL traces need none."""
    write(tmp_path, *([node(1, COMP, us=1)] for _ in range(4)))
    (tmp_path / "job.emu.yml").write_text(CHAKRA)
    with pytest.raises(SpecError, match=r"groups\.json: cannot be read \(No such file"):
        load_spec(tmp_path / "job.emu.yml")
    with pytest.raises(
        SpecError, match=r"groups is for Chakra's traces, and has no effect for GOAL; leave it out"
    ):
        load_spec(tmp_path / "job.emu.yml", ["traffic.job.format=goal"])


NODES = """
topology: {kind: rail, servers: 2, rails: 2, spines: 2}
hosts: {gpus: 2}
traffic: [{name: job, pattern: trace, format: chakra, file: job, among: all}]
"""


def trace_of_an_all_reduce(folder: Path, size: int) -> Path:
    attributes = {"comm_type": ALL_REDUCE, "comm_size": size}
    write(folder, *([node(1, COLL, attributes)] for _ in range(4)))
    path = folder / "job.emu.yml"
    path.write_text(NODES)
    return path


@pytest.mark.parametrize("algorithm", ["ring", "tree", "double-tree", "hierarchical"])
def test_collectives_of_a_trace_use_all_nics(algorithm: str, tmp_path: Path) -> None:
    """With the algorithm that the entry chooses, in chunks; the default is the ring."""
    path = trace_of_an_all_reduce(tmp_path, 400_000)
    with started(
        load_spec(path, [f"traffic.0.algorithm={algorithm}", "traffic.0.chunk=4KB"])
    ) as run:
        flows = finish(run).flows
    assert {flow.completed for flow in flows.values()} == {True}
    across: defaultdict[str, int] = defaultdict(int)
    for flow in flows.values():
        if (int(flow.src[1:]) - 1) // 2 != (int(flow.dst[1:]) - 1) // 2:
            across[flow.src] += flow.bytes
    assert len(across) == 4
    assert max(across.values()) <= 1.05 * min(across.values())


def test_unsuitable_group_for_an_algorithm_is_an_error(tmp_path: Path) -> None:
    """Three ranks of two servers of two GPUs do not fit two tiers."""
    path = trace_of_an_all_reduce(tmp_path, 400_000)
    groups = {"0": [0, 1, 2], "1": [3]}
    (tmp_path / "groups.json").write_text(json.dumps(groups))
    attributes = {"comm_type": ALL_REDUCE, "comm_size": 400_000}
    names = ["0", "0", "0", "1"]
    write(tmp_path, *([node(1, COLL, {**attributes, "pg_name": name})] for name in names))
    settings = ["traffic.0.algorithm=hierarchical", "traffic.0.groups=groups.json"]
    with pytest.raises(
        SpecError, match=r"3 ranks are not a whole number of servers of 2 GPUs; choose"
    ):
        load_spec(path, settings)


def test_gpu_speed_gives_operations_a_duration(tmp_path: Path) -> None:
    """2·10^9 operations at 400 TFLOP/s are 5 us; without a speed, a diagnostic asks for one."""
    write(tmp_path, *([node(1, COMP, {"num_ops": 2_000_000_000})] for _ in range(4)))
    path = tmp_path / "job.emu.yml"
    path.write_text(NODES)
    with pytest.raises(SpecError, match=r"node 1: has num_ops and no duration_micros; .* tflops"):
        load_spec(path)
    graph = load_spec(path, ["traffic.0.tflops=400"]).workload()
    assert graph.lasts_ns.tolist() == [5_000] * 4


@pytest.mark.parametrize("key", ["tflops=400", "algorithm=tree", "chunk=64KB", "channels=2"])
def test_chakra_keys_are_refused_for_goal(key: str, spec_file: Path) -> None:
    name = key.partition("=")[0]
    with pytest.raises(SpecError, match=rf"{name} is for Chakra's traces, and has no effect"):
        load_spec(spec_file, [f"traffic.0.{key}"])
