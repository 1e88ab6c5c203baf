"""`pytest --emu-plan`, as users run it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.doc_blocks import ROOT

pytest_plugins = ["pytester"]

TWO_HOSTS = """
topology: {kind: dumbbell, hosts_per_side: 1}
switches: {preset: sonic}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, size: 64KB}]
"""
INFINIBAND = """
fabric: ib
topology: {kind: dumbbell, hosts_per_side: 2}
traffic: [{name: flow, pattern: pair, from: h1, to: h3, size: 64KB}]
"""
NO_PFC = TWO_HOSTS.replace("hosts_per_side: 1", "hosts_per_side: 2").replace("sonic", "dctcp")
WITHOUT_PFC_AT_H2 = NO_PFC.replace("dctcp", "sonic, nodes: {left: {ports: {h2: {pfc: off}}}}")


@pytest.fixture
def plans(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with specs, and a test that a plan must not run."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "200")
    specs = {"two": TWO_HOSTS, "ib": INFINIBAND, "no-pfc": NO_PFC, "mistake": WITHOUT_PFC_AT_H2}
    for name, text in specs.items():
        (pytester.path / f"{name}.emu.yml").write_text(text)
    pytester.makepyfile("def test_of_the_users_own(): assert False")
    return pytester


def _run(plans: pytest.Pytester, *options: str) -> pytest.RunResult:
    return plans.runpytest_inprocess("-p", "no:cacheprovider", *options)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_plan_runs_its_cases_alone(plans: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """The table has every case in order, skips with their reason, however many processes ran."""
    ran = _run(plans, "--emu-plan", "sonic-lossless", *workers)
    ran.assert_outcomes(passed=13, skipped=1)
    ran.stdout.fnmatch_lines(
        [
            "*plan sonic-lossless: 13 passed, 1 skipped*",
            "case *criterion *tolerance *measured *verdict",
            "L01 P0 One priority is paused *3 receives nothing*0 exact; 2 %*passed",
            "L14 P1 *it needs ports of two ASICs*skipped",
            "L15 P0 *RxPfc*1000 of 1000 sent*passed",
        ]
    )


def test_results_are_written(plans: pytest.Pytester) -> None:
    """JUnit XML, plan.json and plan.md have criterion, tolerance and measured value."""
    _run(
        plans, "--emu-plan", "sonic-lossy", "--junitxml", "junit.xml", "--emu-plan-out", "out"
    ).assert_outcomes(passed=3)
    cases = [*ElementTree.parse(plans.path / "junit.xml").iter("testcase")]
    assert [case.get("name") for case in cases] == ["Y01", "Y02", "Y04"]
    properties = {p.get("name"): p.get("value") for p in cases[2].iter("property")}
    document = json.loads((plans.path / "out/plan.json").read_text())
    assert document["plan"] == "sonic-lossy"
    assert document["cases"][2] == properties
    assert properties["tolerance"] == "exact"
    assert "packets dropped" in (properties["measured"] or "")
    assert "| Y04 P1 A lossy queue is oversubscribed |" in (plans.path / "out/plan.md").read_text()


def test_failed_case_says_what_was_measured(plans: pytest.Pytester) -> None:
    """There is no traceback, and JUnit XML has the measured value."""
    ran = _run(
        plans,
        *("--emu-plan", "sonic-lossless", "--emu-spec", "mistake.emu.yml"),
        *("-k", "L01", "--junitxml", "junit.xml"),
    )
    ran.assert_outcomes(failed=1, deselected=13)
    ran.stdout.fnmatch_lines(["  criterion: 3 receives*", "  measured:  3 received * packets;*"])
    assert "Traceback" not in ran.stdout.str() + ran.stderr.str()
    (failure,) = ElementTree.parse(plans.path / "junit.xml").iter("failure")
    assert "measured:  3 received" in (failure.text or "")


def test_case_without_what_it_needs_is_skipped(plans: pytest.Pytester) -> None:
    ran = _run(plans, "--emu-plan", "sonic-ecn", "--emu-spec", "no-pfc.emu.yml", "-rs")
    ran.assert_outcomes(skipped=5)
    ran.stdout.fnmatch_lines(["*no port of * has PFC; give it switches.pfc*"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--emu-plan", "sonic-lossles"],
            "--emu-plan: there is no plan 'sonic-lossles' (did you mean 'sonic-lossless'?); there "
            "are sonic-ecn, sonic-lossless, sonic-lossy, sonic-pfcwd",
        ),
        (["--emu-plan", "sonic-ecn", "--emu-spec", "ib.emu.yml"], "ib.emu.yml: is on InfiniBand*"),
        (["--emu-plan", "sonic-ecn", "--emu-spec", "no.emu.yml"], "no.emu.yml: cannot be read*"),
        (
            ["--emu-plan", "sonic-ecn", "--emu-spec", "two.emu.yml"],
            "two.emu.yml: has 2 hosts, and E04 (Marks before pauses) needs 3; add hosts, or leave "
            "such cases out with -k 'not E04'",
        ),
        (
            ["--emu-plan", "sonic-ecn", "--emu-plan-require", "lossles=3"],
            "*KEY is one of *(did you mean 'lossless'?)",
        ),
        (
            ["--emu-plan", "sonic-ecn", "--emu-plan-require", "lossless=9"],
            "*'9' is no value of lossless; write lossless=3,4",
        ),
        (["--emu-spec", "two.emu.yml"], "--emu-spec: which plan? add --emu-plan NAME"),
    ],
)
def test_mistake_is_a_usage_error(plans: pytest.Pytester, options: list[str], told: str) -> None:
    """It is said in one line, and nothing runs."""
    ran = _run(plans, *options)
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([f"ERROR: {told}"])
    assert "Traceback" not in ran.stdout.str() + ran.stderr.str()


def test_two_hosts_suffice_for_other_cases(plans: pytest.Pytester) -> None:
    """Senders of other switches are testers, too."""
    options = ("--emu-plan", "sonic-ecn", "--emu-spec", "two.emu.yml", "-k", "not E04")
    _run(plans, *options).assert_outcomes(passed=4, deselected=1)


def test_imported_configurations_are_tested(plans: pytest.Pytester) -> None:
    """A spec of `emu import sonic` passes, with the times of its own watchdog."""
    spec = plans.path / "fabric.emu.yml"
    arguments = ("import", "sonic", ROOT / "examples/sonic", "-o", spec)
    assert plans.run(sys.executable, "-m", "emu.cli.main", *arguments).ret == 0
    ran = _run(plans, "--emu-plan", "sonic-pfcwd", "--emu-spec", spec.name)
    ran.assert_outcomes(passed=5)
    ran.stdout.fnmatch_lines(["W01 *found after 200 ms*passed"])


def test_reference_fabric_is_a_whole_spec() -> None:
    from emu.plans.pytest_items import REFERENCE
    from emu.spec.load import load_spec

    assert len(load_spec(Path(REFERENCE)).topology.build().hosts) == 4
