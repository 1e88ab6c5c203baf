"""Did the run show what its spec's `verify:` says it must?

Every check is measured against the run's summary, so that a stored summary can
be judged again. A run that the machine did not keep up with is not judged at
all: neither a pass nor a failure would mean anything.

    lossless   drops of that priority, over all ports
    completed  flows that are not over
    goodput    of one flow, from its start to its end
    finish     when a flow, or the last flow of a traffic entry, was over
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emu.errors import ExitCode
from emu.report.summary import FlowSummary, Summary
from emu.spec.model import Check, Finish, Goodput, Lossless
from emu.units import PS_PER_NS, format_rate, format_time_ns


@dataclass(frozen=True)
class CheckResult:
    """One check after a run."""

    check: str
    """What must hold: `goodput of victim at least 60 Gb/s`."""
    passed: bool | None
    """None: not judged, because the run is inconclusive."""
    detail: str
    """What was measured; where it failed, what its author wants said then."""


def judge(checks: Iterable[Check], summary: Summary) -> tuple[CheckResult, ...]:
    """The results of all checks, in order."""
    if summary["fidelity"]["verdict"] != "ok":
        return tuple(
            CheckResult(wanted(check), None, "the run is inconclusive") for check in checks
        )
    return tuple(_judge_one(check, summary) for check in checks)


def exit_code(summaries: Iterable[Summary], results: Iterable[CheckResult]) -> ExitCode:
    """What `emu` tells its caller. Inconclusive comes first: what was not measured cannot fail."""
    if any(summary["fidelity"]["verdict"] != "ok" for summary in summaries):
        return ExitCode.INCONCLUSIVE
    if any(result.passed is False for result in results):
        return ExitCode.CHECK_FAILED
    return ExitCode.OK


def wanted(check: Check) -> str:
    """A check in words."""
    if check.lossless is not None:
        return f"priority {check.lossless.priority} is lossless"
    if check.goodput is not None:
        return f"goodput of {check.goodput.flow} {_goodput_range(check.goodput)}"
    if check.finish is not None:
        subject = check.finish.flow or check.finish.traffic
        return f"{subject} over by {format_time_ns(check.finish.by_ps / PS_PER_NS)}"
    return "every flow completed"


def _goodput_range(goodput: Goodput) -> str:
    at_least, at_most = goodput.at_least_bps, goodput.at_most_bps
    bounds = (
        f"at least {format_rate(at_least)}" if at_least is not None else "",
        f"at most {format_rate(at_most)}" if at_most is not None else "",
    )
    return " and ".join(bound for bound in bounds if bound)


def _judge_one(check: Check, summary: Summary) -> CheckResult:
    passed, measured = _measure(check, summary)
    reproach = f": {check.fail}" if check.fail and not passed else ""
    return CheckResult(wanted(check), passed, measured + reproach)


def _measure(check: Check, summary: Summary) -> tuple[bool, str]:
    if check.lossless is not None:
        return _measure_drops(check.lossless, summary)
    if check.goodput is not None:
        return _measure_goodput(check.goodput, summary)
    if check.finish is not None:
        return _measure_finish(check.finish, summary)
    return _measure_completed(summary)


_DISCARDS = ("rx_prio{}_buf_discard", "tx_prio{}_discards")
"""Counters of a RoCE port: no room in the buffer, and none in the egress queue."""


def _measure_drops(lossless: Lossless, summary: Summary) -> tuple[bool, str]:
    """InfiniBand has no priorities and drops of none: there everything counts."""
    if summary["fabric"] == "roce":
        names = [name.format(lossless.priority) for name in _DISCARDS]
        drops = sum(own.get(name, 0) for own in summary["ports"].values() for name in names)
    else:
        drops = summary["totals"]["drops_lossless"] + summary["totals"]["drops_lossy"]
    return drops == 0, f"{drops:,} packets dropped"


def _measure_completed(summary: Summary) -> tuple[bool, str]:
    flows = summary["flows"]
    unfinished = [flow["name"] for flow in flows if not flow["completed"]]
    if not unfinished:
        return True, f"all {len(flows)} completed"
    return False, f"{len(unfinished)} of {len(flows)} not: {', '.join(unfinished)}"


def _measure_goodput(goodput: Goodput, summary: Summary) -> tuple[bool, str]:
    flows = [flow for flow in summary["flows"] if flow["name"] == goodput.flow]
    unfinished = _unfinished(goodput.flow, flows)
    if unfinished:
        return False, unfinished
    measured = flows[0]["goodput_bps"]
    at_least, at_most = goodput.at_least_bps, goodput.at_most_bps
    passed = (at_least is None or measured >= at_least) and (at_most is None or measured <= at_most)
    return passed, format_rate(measured)


def _measure_finish(finish: Finish, summary: Summary) -> tuple[bool, str]:
    subject = finish.flow or finish.traffic or ""
    key = "name" if finish.flow else "traffic"
    flows = [flow for flow in summary["flows"] if dict(flow)[key] == subject]
    unfinished = _unfinished(subject, flows)
    if unfinished:
        return False, unfinished
    last_ns = max(flow["end_ns"] or 0 for flow in flows)
    return last_ns * PS_PER_NS <= finish.by_ps, f"over at {format_time_ns(last_ns)}"


def _unfinished(subject: str, flows: Sequence[FlowSummary]) -> str:
    """Why there is nothing to measure; empty when there is."""
    if not flows:
        return f"no flow of this run is called {subject}"
    left = [flow["name"] for flow in flows if not flow["completed"] or flow["end_ns"] is None]
    return f"never over: {', '.join(left)}" if left else ""
