"""Published results come out: every spec of topologies/results, and each of its variants.

On the virtual clock, where the checks have their narrow tolerances, and with other
seeds and other numbers of hosts than the spec's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.facts import RunFacts
from emu.shim.managed import manage
from emu.shim.virtual import run_virtual
from emu.spec.model import Spec, load_spec

RESULTS = sorted(Path("topologies/results").glob("*.emu.yml"))


def failures(spec: Spec, out: Path) -> list[str]:
    """What did not hold, with what was measured."""
    topology = spec.topology.build()
    subnet = manage(spec, topology, out / "subnet") if spec.fabric == "ib" else None
    recording = run_virtual(spec, topology, subnet=subnet, out=out)
    checks = RunFacts(spec.name, recording, spec, topology).checks
    assert checks, "a result without a check"
    return [f"{check.check}: {check.detail}" for check in checks if not check.passed]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name.partition(".")[0])
def test_the_result_comes_out(path: Path, tmp_path: Path) -> None:
    """As the spec stands, and with two other seeds."""
    for seed in ((), ("seed=2",), ("seed=3",)):
        assert failures(load_spec(path, seed), tmp_path) == []


@pytest.mark.parametrize(
    ("path", "variant"),
    [(path, name) for path in RESULTS for name in load_spec(path).compare],
    ids=lambda value: value.name.partition(".")[0] if isinstance(value, Path) else value,
)
def test_its_cures_and_counterparts_come_out(path: Path, variant: str, tmp_path: Path) -> None:
    """Each variant by its own checks."""
    assert failures(load_spec(path).variants()[variant], tmp_path) == []


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        # Two, and six, instead of three behind the spine's port: half to h2, the rest alike.
        (
            "pfc-unfairness",
            [
                "traffic.0.from=[h2, h5, h6]",
                "verify=[{share: {flow: greedy.h2-h1, traffic: greedy, after: 2ms, is: 0.5, "
                "within: 0.5%}}, {fairness: {traffic: greedy, after: 2ms, is: 8/9, within: 0.4%}}]",
            ],
        ),
        (
            "pfc-unfairness",
            [
                "topology.hosts_per_leaf=8",
                "traffic.0.from=[h2, h9, h10, h11, h12, h13, h14]",
                "verify=[{share: {flow: greedy.h2-h1, traffic: greedy, after: 2ms, is: 0.5, "
                "within: 0.5%}}, {fairness: {traffic: greedy, after: 2ms, is: 0.4898, "
                "within: 0.4%}}]",
            ],
        ),
        (
            "pfc-deadlock",
            [
                "topology.switches=11",
                "traffic.0.from=h1-h11",
                "traffic.0.to=[h4, h5, h6, h7, h8, h9, h10, h11, h1, h2, h3]",
            ],
        ),
        ("headroom", ["hosts.nic.mtu=4096", "switches.latency=100ns"]),
        ("spray", ["topology.hosts_per_leaf=2", "traffic.0.among=h1-h4"]),
        ("spray", ["topology.hosts_per_leaf=8", "traffic.0.among=h1-h16"]),
    ],
    ids=[
        "two behind",
        "six behind",
        "eleven switches",
        "faster switches",
        "half the hosts",
        "twice the hosts",
    ],
)
def test_it_holds_with_other_numbers(name: str, settings: list[str], tmp_path: Path) -> None:
    """What is expected follows from the numbers, not from a fit."""
    spec = load_spec(Path(f"topologies/results/{name}.emu.yml"), settings)
    assert failures(spec, tmp_path) == []
