"""The example that cuts one training step in several ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec

SPEC = Path(__file__).parents[2] / "topologies/parallelisms.emu.yml"


def test_each_way_to_cut_a_step_sends_what_its_report_says(tmp_path: Path) -> None:
    """Every variant completes, and the bytes by purpose are those of its flows."""
    found = load_spec(SPEC).variants()
    assert list(found) == ["megatron", "interleaved", "overlapping", "context", "fsdp"]
    for name, spec in found.items():
        run = VirtualRunner().run(spec, out=tmp_path / name)
        (step,) = run.steps
        assert sum(step.bytes_for.values()) == sum(flow.bytes for flow in run.flows)
        assert all(flow.completed for flow in run.flows)
        assert step.exposed_ns is not None
        assert step.exposed_ns > 0


@pytest.mark.parametrize("key", ["zero=3", "overlap=none", "sequence_parallel=false"])
def test_a_step_can_be_changed_key_by_key(key: str) -> None:
    load_spec(SPEC, [f"traffic.step.{key}"])
