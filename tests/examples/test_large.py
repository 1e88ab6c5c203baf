"""The large examples: built at a reduced size, and linear growth by counting."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from emu.runtime import runner_of
from emu.runtime.virtual import VirtualFabric, VirtualRunner
from emu.spec.model import Spec, load_spec

LARGE = Path(__file__).parents[2] / "examples/large"
FAT_TREE, RAIL = LARGE / "fat-tree-8192.emu.yml", LARGE / "rail-16384.emu.yml"
TRAINING = LARGE / "training-70b.emu.yml"


def permutation(hosts: int) -> str:
    return f"traffic=[{{name: p, pattern: permutation, among: h1-h{hosts}, size: 20KB}}]"


def fat_tree(k: int) -> Spec:
    return load_spec(FAT_TREE, [f"topology.k={k}", permutation(k**3 // 4)])


def rail(servers: int) -> Spec:
    hosts = 16 * servers
    sizes = [f"topology.servers={servers}", "topology.rails=16", f"topology.spines={servers}"]
    return load_spec(RAIL, [*sizes, permutation(hosts)])


@pytest.mark.parametrize("path", [FAT_TREE, RAIL], ids=lambda path: path.stem)
def test_the_examples_are_valid(path: Path) -> None:
    """At full size."""
    spec = load_spec(path)
    assert str(len(spec.topology.build().hosts)) in spec.name


def test_a_small_step_of_the_kind_is_as_long_by_flows_as_with_packets(tmp_path: Path) -> None:
    """64 GPUs, and two layers to a stage."""
    less = ["topology.servers=8", "topology.rails=8", "topology.spines=8"]
    sizes = {"layers": 4, "hidden": 256, "heads": 8, "head_size": 32, "ffn": 1024, "vocabulary": 0}
    step = [f"traffic.step.{key}={value}" for key, value in ({"sequence": 128} | sizes).items()]
    ranks = ["traffic.step.among=h1-h64", "traffic.step.pipeline=2", "traffic.step.micro_batches=4"]
    spec = load_spec(TRAINING, [*less, *step, *ranks])
    took = {}
    for model in ("flow", "packets"):
        recording = runner_of(model, "virtual").run(spec, out=tmp_path / model)
        assert all(flow.completed for flow in recording.flows)
        took[model] = recording.steps[0].took_ns
    assert took["flow"] == pytest.approx(took["packets"], rel=0.05)


@pytest.mark.parametrize("spec", [fat_tree(8), rail(8)], ids=["fat-tree", "rail"])
def test_a_small_one_of_the_kind_holds_its_checks(spec: Spec, tmp_path: Path) -> None:
    """Every flow completes, and nothing is dropped."""
    recording = VirtualRunner().run(spec, out=tmp_path)
    assert all(flow.completed for flow in recording.flows)
    assert recording.totals["drops_lossless"] == 0


def calls_of(spec: Spec) -> int:
    """The number of Python and C functions that building a fabric calls, validation included."""
    calls = 0

    def count(_frame: object, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        anew = Spec.model_validate(spec.to_mapping())
        with VirtualFabric(anew, anew.topology.build()):
            pass
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    ("small", "large"),
    [(fat_tree(8), fat_tree(16)), (rail(8), rail(64))],
    ids=["fat-tree", "rail"],
)
def test_work_to_build_grows_like_the_fabric(small: Spec, large: Spec) -> None:
    """Eight times the hosts, cables and ports: eight times the calls, and not their square."""
    ratio = calls_of(large) / calls_of(small)
    cables = len(large.topology.build().cables) / len(small.topology.build().cables)
    assert ratio < 1.15 * cables
