"""The example of a trace: SimCCL's flows of an all-to-all."""

from __future__ import annotations

from pathlib import Path

from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec
from tests.support.simccl_writer import all_to_all

TRACES = Path(__file__).parents[2] / "examples/traces"


def test_the_example_is_what_simccl_writes_for_an_all_to_all() -> None:
    assert (TRACES / "all-to-all.csv").read_text() == all_to_all(8, 4 * 2**20)


def test_the_flows_of_the_example_complete_on_each_fabric(tmp_path: Path) -> None:
    """No fabric is faster than a link: 3,670,016 bytes at 100 Gbit/s."""
    for name, spec in load_spec(TRACES / "all-to-all.emu.yml").variants().items():
        run = VirtualRunner().run(spec, out=tmp_path / name)
        assert len(run.flows) == 56
        assert all(flow.completed for flow in run.flows)
        assert max(flow.end_ns or 0 for flow in run.flows) > 3_670_016 * 8 / 100
