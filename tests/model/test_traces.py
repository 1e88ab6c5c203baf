"""Traces on the virtual clock: what a spec names is played, work and waiting included."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import SpecError
from emu.spec.load import load_spec
from tests.model.fabrics import finish, started

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


def test_a_trace_needs_as_many_hosts_as_it_has_ranks(spec_file: Path) -> None:
    """Whether they are named or meant by a group; the line is told."""
    with pytest.raises(SpecError, match=r"relay\.emu\.yml:3:.*the trace has 3 ranks, and among"):
        load_spec(spec_file, ["topology.hosts_per_leaf=4"])
