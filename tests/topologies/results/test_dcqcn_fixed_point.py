"""Result R3, compared with DCQCN's fluid model, and with its paper packet by packet."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec
from emu.spec.scenario import Spec
from tests.topologies.results.dcqcn import Line, fixed_point, mean_queue

SPEC = Path("topologies/results/r3-dcqcn-fixed-point.emu.yml")
PAPER, LONG = Line(), Line(kmax=395e3, pmax=0.02)
START_US, END_US = 30_000, 60_000


def measured(spec: Spec, folder: Path) -> float:
    """Mean depth of the queue in that time."""
    recording = VirtualRunner().run(spec, out=folder)
    series = recording.series
    depths = series.queue_bytes[:, series.ports.index("leaf1:h1")]
    return float(depths[series.time_ns >= START_US * 1000].mean())


@pytest.mark.parametrize(
    ("flows", "variant"), [(2, "two"), (4, "four"), (8, "eight"), (10, "ten-on-a-longer-line")]
)
def test_expected_queue_is_the_fluid_models_fixed_point(flows: int, variant: str) -> None:
    """The expected number is not fitted."""
    (queue, *_) = load_spec(SPEC).variants()[variant].verify
    assert queue.queue is not None
    assert queue.queue.is_ == pytest.approx(fixed_point(flows, PAPER), rel=1e-3)
    assert fixed_point(flows, LONG) == pytest.approx(fixed_point(flows, PAPER))


@pytest.mark.parametrize(
    ("flows", "line"), [(4, PAPER), (10, PAPER), (10, LONG)], ids=["four", "ten", "longer line"]
)
def test_queue_depth_matches_an_independent_model(flows: int, line: Line, tmp_path: Path) -> None:
    """Also where the fluid model, which has no randomness, predicts another depth."""
    settings = [
        f"time_limit={END_US}us",
        f"traffic.incast.from=all[1:{flows + 1}]",
        f"switches.ecn.kmax={line.kmax:.0f}",
        f"switches.ecn.pmax={line.pmax}",
        "verify=[]",
        "compare={}",
    ]
    expected = mean_queue(flows, line, start=START_US, end=END_US)
    assert measured(load_spec(SPEC, settings), tmp_path) == pytest.approx(expected, rel=0.25)
