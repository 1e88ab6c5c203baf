"""Checks against summaries: what passes, what fails, what is not judged."""

from __future__ import annotations

from typing import Any

import pytest

from emu.errors import ExitCode
from emu.measure.recording import Fidelity
from emu.report.summary import Summary, summarise
from emu.report.verdict import CheckResult, exit_code, judge
from emu.spec.model import Check
from tests.report.synthetic import INCONCLUSIVE, record, spec

ENDS: dict[str, int | None] = {f"incast.h{n}-h1": 600_000 for n in range(2, 9)}
OK = Fidelity("ok", 1, 2, 3, budget_ns=334)


def summary(fabric: str = "roce", victim_ns: int | None = 100_000, **fields: Any) -> Summary:
    return summarise(record(spec(fabric=fabric), ends_ns=ENDS | {"victim": victim_ns}, **fields))


def one(check: dict[str, Any], measured: Summary) -> CheckResult:
    (result,) = judge([Check.model_validate(check)], measured)
    return result


@pytest.mark.parametrize(
    ("check", "passed", "detail"),
    [
        ({"completed": "all"}, True, "all 8 completed"),
        ({"lossless": {"priority": 3}}, True, "0 packets dropped"),
        ({"goodput": {"flow": "victim", "at_least": "80Gbit"}}, True, "80 Gb/s"),
        ({"goodput": {"flow": "victim", "at_least": "81Gbit"}}, False, "80 Gb/s"),
        ({"goodput": {"flow": "victim", "at_most": "79Gbit"}}, False, "80 Gb/s"),
        ({"finish": {"flow": "victim", "by": "100us"}}, True, "over at 100 us"),
        ({"finish": {"traffic": "incast", "by": "600us"}}, True, "over at 600 us"),
        ({"finish": {"traffic": "incast", "by": "599us"}}, False, "over at 600 us"),
        (
            {"goodput": {"flow": "vctim", "at_least": "1Gbit"}},
            False,
            "no flow of this run is called vctim",
        ),
    ],
)
def test_check_is_measured(check: dict[str, Any], passed: bool, detail: str) -> None:
    """Each kind, at its limit and beyond; the limit itself passes."""
    result = one(check, summary())
    assert (result.passed, result.detail) == (passed, detail)


@pytest.mark.parametrize(
    ("check", "detail"),
    [
        ({"completed": "all"}, "1 of 8 not: victim"),
        ({"goodput": {"flow": "victim", "at_most": "1Gbit"}}, "never over: victim"),
        ({"finish": {"flow": "victim", "by": "1s"}}, "never over: victim"),
    ],
)
def test_unfinished_flow_fails_every_check_of_it(check: dict[str, Any], detail: str) -> None:
    """Even one that only forbids too much goodput."""
    result = one(check, summary(victim_ns=None))
    assert (result.passed, result.detail) == (False, detail)


def test_lossless_counts_its_own_priority_only() -> None:
    """Drops of another priority are not its business."""
    measured = summary(ports={"leaf1:h1": {"rx_prio3_buf_discard": 2, "tx_prio5_discards": 7}})
    assert one({"lossless": {"priority": 3}}, measured).detail == "2 packets dropped"
    assert one({"lossless": {"priority": 0}}, measured).passed


def test_infiniband_counts_every_drop() -> None:
    """It has no priorities, and drops of none."""
    measured = summary("ib", totals={"drops_lossless": 1})
    assert one({"lossless": {"priority": 3}}, measured).passed is False


def test_failed_check_says_what_its_author_wants_said() -> None:
    """And says it only then."""
    check = {"goodput": {"flow": "victim", "at_least": "90Gbit"}, "fail": "head of line blocked"}
    assert one(check, summary()).detail == "80 Gb/s: head of line blocked"
    assert one(check, summary(victim_ns=80_000)).detail == "100 Gb/s"


def test_inconclusive_run_is_not_judged() -> None:
    """Neither a pass nor a failure would mean anything."""
    result = one({"completed": "all"}, summary(fidelity=INCONCLUSIVE))
    assert result == CheckResult("every flow completed", None, "the run is inconclusive")


@pytest.mark.parametrize(
    ("fidelity", "victim_ns", "code"),
    [
        (OK, 1, ExitCode.OK),
        (OK, None, ExitCode.CHECK_FAILED),
        (INCONCLUSIVE, 1, ExitCode.INCONCLUSIVE),
        (INCONCLUSIVE, None, ExitCode.INCONCLUSIVE),
    ],
)
def test_exit_code(fidelity: Fidelity, victim_ns: int | None, code: ExitCode) -> None:
    """Inconclusive goes before failed."""
    measured = summary(victim_ns=victim_ns, fidelity=fidelity)
    assert exit_code([measured], judge(spec().verify, measured)[:1]) is code
