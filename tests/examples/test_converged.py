"""The shipped converged fabric: what classes keep apart, and where they do not help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from emu.report.run_view import RunFacts, last_finish_ns
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec
from emu.subnet.sm_sweeps import manage
from tests.support.needs import need

SPEC = Path(__file__).parents[2] / "topologies" / "converged.emu.yml"
FABRICS = {"roce": ("", "storm"), "ib": ("ib-", "slow-drive")}
"""The prefix of its variants, and the one in which a drive takes nothing."""

RunOf = Callable[[str], RunFacts]


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """The run of a variant; each is done once."""
    variants, done = load_spec(SPEC).variants(), dict[str, RunFacts]()

    def find(name: str) -> RunFacts:
        if name not in done:
            spec, out = variants[name], tmp_path_factory.mktemp(name)
            topology = spec.topology.build()
            if spec.fabric == "ib":
                need("OpenSM", "ibsim")
            subnet = manage(spec, topology, out / "subnet") if spec.fabric == "ib" else None
            recording = VirtualRunner(subnet).run(spec, out=out)
            done[name] = RunFacts(spec.name, recording, spec, topology)
        return done[name]

    return find


def tokens_ns(run: RunFacts) -> int:
    """When the collective was over."""
    return finish_ns(run, "tokens")


def finish_ns(run: RunFacts, traffic: str) -> int:
    end_ns = last_finish_ns(flow for flow in run.flows if flow.traffic == traffic)
    assert end_ns is not None
    return end_ns


def reports_ns(run: RunFacts) -> int:
    """What 99 % of the reports took at most."""
    (reports,) = (own for own in run.latencies if own.traffic == "reports")
    assert reports.p99_ns is not None
    return reports.p99_ns


@pytest.mark.parametrize("fabric", FABRICS)
def test_management_waits_for_the_others_only_in_their_class(run_of: RunOf, fabric: str) -> None:
    prefix, _ = FABRICS[fabric]
    apart = reports_ns(run_of(f"{prefix}three-classes"))
    assert reports_ns(run_of(f"{prefix}one-class")) > 5 * apart
    if fabric == "roce":
        assert apart < 1.25 * reports_ns(run_of("reports-alone"))


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_drive_that_takes_nothing_stops_its_class_alone(run_of: RunOf, fabric: str) -> None:
    """Compute is at most 2 % later (SONiC's rule for lossy classes beside a storm)."""
    prefix, ill = FABRICS[fabric]
    well, one_class = run_of(f"{prefix}three-classes"), run_of(f"{prefix}one-class")
    assert tokens_ns(run_of(f"{prefix}{ill}")) < 1.02 * tokens_ns(well)
    in_one_class = run_of(f"{prefix}{ill}-in-one-class")
    assert tokens_ns(in_one_class) > 1.2 * tokens_ns(one_class)
    assert reports_ns(in_one_class) > 50 * reports_ns(well)


def test_classes_give_no_bandwidth(run_of: RunOf) -> None:
    """Compute and storage share cables."""
    assert tokens_ns(run_of("three-classes")) > 1.3 * tokens_ns(run_of("tokens-alone"))


def test_a_wrong_map_drops_storage_and_management(run_of: RunOf) -> None:
    run = run_of("wrong-map")
    assert run.drops > 100
    unfinished = {flow.traffic for flow in run.flows if not flow.completed}
    assert unfinished == {"drives", "reports"}


def test_an_elephant_costs_storage_what_it_sends(run_of: RunOf) -> None:
    """The reports share its class and wait for a packet of it now and then; compute does not."""
    run, usual = run_of("elephant"), run_of("three-classes")
    assert tokens_ns(run) < 1.02 * tokens_ns(usual)
    assert reports_ns(usual) < reports_ns(run) < 2 * reports_ns(usual)
    assert finish_ns(run, "drives") > 1.2 * finish_ns(usual, "drives")
