"""Published results are reproduced: every spec of topologies/results, and each of its variants.

On the virtual clock, where the checks have their narrow tolerances, and with other seeds and other
numbers of hosts than the spec's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.reruns import TIMES, variations
from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import Spec, load_spec
from emu.subnet.sm_sweeps import manage

RESULTS = sorted(Path("topologies/results").glob("*.emu.yml"))


def failures(spec: Spec, out: Path) -> list[str]:
    """The failed checks, with the measured values."""
    topology = spec.topology.build()
    subnet = manage(spec, topology, out / "subnet") if spec.fabric == "ib" else None
    recording = VirtualRunner(subnet).run(spec, out=out)
    checks = RunFacts(spec.name, recording, spec, topology).checks
    assert checks, "a result without a check"
    return [f"{check.check}: {check.detail}" for check in checks if not check.passed]


def sizes_of(path: Path) -> list[tuple[str, ...]]:
    """The settings for half and for twice the hosts, if the result has them."""
    return [o.settings for o in variations(load_spec(path), 1, list(TIMES)) if o.settings]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name.partition(".")[0])
def test_result_is_reproduced(path: Path, tmp_path: Path) -> None:
    """With the spec's seed, and with two others."""
    for seed in ((), ("seed=2",), ("seed=3",)):
        assert failures(load_spec(path, seed), tmp_path) == []


@pytest.mark.parametrize(
    ("path", "variant"),
    [(path, name) for path in RESULTS for name in load_spec(path).compare],
    ids=lambda value: value.name.partition(".")[0] if isinstance(value, Path) else value,
)
def test_fixes_and_counterparts_are_reproduced(path: Path, variant: str, tmp_path: Path) -> None:
    """Each variant by its own checks."""
    assert failures(load_spec(path).variants()[variant], tmp_path) == []


@pytest.mark.parametrize(
    ("path", "settings"),
    [(path, settings) for path in RESULTS for settings in sizes_of(path)],
    ids=lambda value: value.name.partition(".")[0] if isinstance(value, Path) else value[0],
)
def test_result_holds_with_half_and_twice_the_hosts(
    path: Path, settings: tuple[str, ...], tmp_path: Path
) -> None:
    """With its fixes and counterparts: the expected values depend on the number of hosts."""
    spec = load_spec(path, settings)
    for run in (spec, *spec.variants().values()):
        assert failures(run, tmp_path) == []


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name.partition(".")[0])
def test_result_has_other_sizes_or_says_why_not(path: Path) -> None:
    about = load_spec(path).about
    assert about is not None
    assert bool(about.one_size) == (sizes_of(path) == [])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "pfc-deadlock",
            [
                "topology.switches=11",
                "traffic.0.from=h1-h11",
                "traffic.0.to=[h4, h5, h6, h7, h8, h9, h10, h11, h1, h2, h3]",
            ],
        ),
        (
            "credit-loop",
            [
                "topology.switches=9",
                "traffic.0.from=h1-h9",
                "traffic.0.to=[h3, h4, h5, h6, h7, h8, h9, h1, h2]",
            ],
        ),
        ("headroom", ["hosts.nic.mtu=4096", "switches.latency=100ns"]),
    ],
    ids=[
        "eleven switches",
        "nine switches",
        "faster switches",
    ],
)
def test_result_holds_with_other_numbers(name: str, settings: list[str], tmp_path: Path) -> None:
    """The expected values follow from the numbers, not from a fit."""
    spec = load_spec(Path(f"topologies/results/{name}.emu.yml"), settings)
    assert failures(spec, tmp_path) == []
