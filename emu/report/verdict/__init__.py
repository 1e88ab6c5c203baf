"""Judges whether a run passes the checks of its spec's `verify:` section.

A check needs only the recording, so that a stored recording can be judged again. An
inconclusive run is not judged, because neither a pass nor a failure would mean anything.
Each kind of check has a function in a file beside this one, and a line in the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from emu.errors import ExitCode
from emu.measure.recording import Recording
from emu.report.summary import Summary
from emu.report.verdict import captures, counters, delivery, flows, ios, queues
from emu.report.verdict.fct import fct_slowdown
from emu.report.verdict.latency import latency
from emu.report.verdict.outcome import Outcome
from emu.spec.model import Check

_MEASURES: dict[str, Callable[[Any, Recording], Outcome]] = {
    "lossless": counters.lossless,
    "completed": flows.completed,
    "goodput": flows.goodput,
    "rate": delivery.rate,
    "finish": flows.finish,
    "latency": latency,
    "fct_slowdown": fct_slowdown,
    "iops": ios.iops,
    "bandwidth": ios.bandwidth,
    "fairness": delivery.fairness,
    "share": delivery.share,
    "queue": queues.depth,
    "counter": counters.counter,
    "agreement": counters.agreement,
    "checksums": captures.checksums,
    "marks": captures.marks,
}


_OF_PACKETS = ("lossless", "queue", "counter", "agreement", "checksums", "marks")
"""Kinds of checks that need a model with packets."""
_OF_SAMPLES = ("rate", "fairness", "share")
"""Kinds of checks that need samples of flows."""


@dataclass(frozen=True)
class CheckResult:
    """One check after a run."""

    check: str
    """The check in words: `goodput of victim at least 60 Gb/s`."""
    passed: bool | None
    """None: not judged, because the run is inconclusive, or its model does not know."""
    detail: str
    """The measured value. After a failure, the text of the check's `fail` key follows."""


def check_results(checks: Iterable[Check], run: Recording) -> tuple[CheckResult, ...]:
    """The results of all checks, in order."""
    return tuple(_check_result(check, run) for check in checks)


def _check_result(check: Check, run: Recording) -> CheckResult:
    wanted = check.in_words(run.clock)
    if run.fidelity.verdict != "ok":
        return CheckResult(wanted, None, "the run is inconclusive")
    if not run.has_packets and check.kind in _OF_PACKETS:
        return CheckResult(wanted, None, f"the {run.model} model does not know it")
    if not run.has_packets and check.kind in _OF_SAMPLES and not run.series.flows:
        return CheckResult(wanted, None, "there are too many flows for samples of each")
    passed, measured = _MEASURES[check.kind](check.what, run)
    fail_text = f": {check.fail}" if check.fail and not passed else ""
    return CheckResult(wanted, passed, measured + fail_text)


def exit_code(summaries: Iterable[Summary], results: Iterable[CheckResult]) -> ExitCode:
    """The exit code of `emu`. Inconclusive comes before failed, because a check that was not
    measured cannot fail."""
    if any(summary["fidelity"]["verdict"] != "ok" for summary in summaries):
        return ExitCode.INCONCLUSIVE
    if any(result.passed is False for result in results):
        return ExitCode.CHECK_FAILED
    return ExitCode.OK


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of several runs: inconclusive comes before failed, as in each of them."""
    return max(codes, default=ExitCode.OK)
