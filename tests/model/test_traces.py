"""Traces on the virtual clock: what a spec names is played, work and waiting included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emu.errors import SpecError
from emu.spec.load import load_spec
from tests.model.fabrics import finish, started
from tests.traffic.test_chakra import ALL_REDUCE, COLL, COMP, node, write

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
    """A spec, and beside it the trace that it names."""
    (tmp_path / "relay.goal").write_text(RELAY)
    path = tmp_path / "relay.emu.yml"
    path.write_text(SPEC)
    return path


def test_a_relay_passes_on_when_it_has_got_everything(spec_file: Path) -> None:
    """After a microsecond of work the first message; the second as soon as that is delivered."""
    with started(load_spec(spec_file)) as run:
        flows = finish(run).flows
    first, second = flows["relay.h1-h2"], flows["relay.h2-h3"]
    assert first.start_ns == 1_000
    assert second.start_ns == first.end_ns
    assert first.completed
    assert second.completed


def test_a_trace_that_was_changed_is_read_again(spec_file: Path) -> None:
    """By whoever loads the spec then; a spec that was loaded before stays what it was."""
    before = load_spec(spec_file)
    trace = spec_file.with_name("relay.goal")
    trace.write_text(RELAY.replace("8192b", "9192b"))
    after = load_spec(spec_file)
    sizes = [spec.workload().bytes_between("h1", "h2") for spec in (before, after)]
    assert sizes == [8192, 9192]


def test_a_trace_needs_as_many_hosts_as_it_has_ranks(spec_file: Path) -> None:
    """Whether they are named or meant by a group; the line is told."""
    with pytest.raises(SpecError, match=r"relay\.emu\.yml:3:.*the trace has 3 ranks, and among"):
        load_spec(spec_file, ["topology.hosts_per_leaf=4"])


CHAKRA = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 4}
traffic: [{name: job, pattern: trace, format: chakra, file: job, groups: groups.json, among: all}]
"""


@pytest.mark.parametrize("groups", [{"0": [0, 1], "1": [2, 3]}, {"0": [0, 1, 2, 3]}])
def test_collectives_run_among_their_process_group(
    groups: dict[str, list[int]], tmp_path: Path
) -> None:
    """Two rings of two, or one of all four; each rank sends what its own ring makes it send."""
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


def test_a_groups_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And not the trace that needs it; GOAL's need none."""
    write(tmp_path, *([node(1, COMP, us=1)] for _ in range(4)))
    (tmp_path / "job.emu.yml").write_text(CHAKRA)
    with pytest.raises(SpecError, match=r"groups\.json: cannot be read \(No such file"):
        load_spec(tmp_path / "job.emu.yml")
    with pytest.raises(
        SpecError, match=r"groups is for Chakra's traces, and means nothing for GOAL; leave it out"
    ):
        load_spec(tmp_path / "job.emu.yml", ["traffic.job.format=goal"])
