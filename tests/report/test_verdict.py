"""Checks against summaries: passed, failed and not judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from emu.errors import ExitCode
from emu.measure.recording import Recording
from emu.measure.records import Counters, Fidelity
from emu.measure.requests import UNFINISHED, UNKNOWN, Requests
from emu.report.summary import summarise
from emu.report.verdict import CheckResult, check_results, exit_code
from emu.spec.model import Check
from tests.support.synthetic import INCAST, INCONCLUSIVE, record, spec
from traffic.graph import Asks

ENDS: dict[str, int | None] = {f"incast.h{n}-h1": 600_000 for n in range(2, 9)}
OK = Fidelity("ok", 1, 2, 3, budget_ns=334)


def run(fabric: str = "roce", victim_ns: int | None = 100_000, **fields: Any) -> Recording:
    return record(spec(fabric=fabric), ends_ns=ENDS | {"victim": victim_ns}, **fields)


def one(check: dict[str, Any], measured: Recording) -> CheckResult:
    (result,) = check_results([Check.model_validate(check)], measured)
    return result


@pytest.mark.parametrize(
    ("check", "passed", "detail"),
    [
        ({"completed": "all"}, True, "all 8 completed"),
        ({"lossless": {"priority": 3}}, True, "0 packets dropped"),
        ({"goodput": {"flow": "victim", "at_least": "80Gbit"}}, True, "80 Gb/s"),
        ({"goodput": {"flow": "victim", "at_least": "81Gbit"}}, False, "80 Gb/s"),
        ({"goodput": {"flow": "victim", "at_most": "79Gbit"}}, False, "80 Gb/s"),
        ({"finish": {"flow": "victim", "by": "100us"}}, True, "finished at 100 us"),
        ({"finish": {"traffic": "incast", "by": "600us"}}, True, "finished at 600 us"),
        ({"finish": {"traffic": "incast", "by": "599us"}}, False, "finished at 600 us"),
        (
            {"goodput": {"flow": "vctim", "at_least": "1Gbit"}},
            False,
            "no flow of this run is called vctim",
        ),
    ],
)
def test_each_kind_of_check_is_measured(check: dict[str, Any], passed: bool, detail: str) -> None:
    """Values at the limit pass, and values beyond fail."""
    result = one(check, run())
    assert (result.passed, result.detail) == (passed, detail)


@pytest.mark.parametrize(
    ("traffic", "percent", "at_most", "passed", "detail"),
    [
        ("reads", 50, "50.5us", True, "50.5 us, n 100"),
        ("reads", 99, "99us", False, "99.01 us, n 100"),
        ("reads", 100, "100us", True, "100 us, n 100"),
        ("writes", 50, "1s", False, "1 of 2 are unfinished"),
        ("victim", 50, "1s", False, "victim has no requests of its own"),
    ],
)
def test_latency_is_that_of_the_requests(
    traffic: str, percent: int, at_most: str, passed: bool, detail: str
) -> None:
    """A hundred reads take 1 to 100 us. One of two writes never ends, which fails any bound."""
    requests = Requests(
        traffic=("reads", "writes"),
        of=np.array([0] * 100 + [1, 1]),
        start_ns=np.zeros(102, np.int64),
        end_ns=np.array([*range(1_000, 101_000, 1_000), 1_000, UNFINISHED]),
    )
    check = {"latency": {"traffic": traffic, "percent": percent, "at_most": at_most}}
    result = one(check, replace(run(), requests=requests))
    assert (result.passed, result.detail) == (passed, detail)


@pytest.mark.parametrize(
    ("which", "at_most", "passed", "detail"),
    [
        ({"up_to": "100KB"}, 99.1, True, "99.01, n 100"),
        ({"up_to": "100KB", "percent": 50}, 50.4, False, "50.50, n 100"),
        ({"up_to": "10KB", "percent": 100}, 10, True, "10.00, n 10"),
        ({"above": "10KB", "up_to": "20KB", "percent": 10}, 11.8, False, "11.90, n 10"),
        ({"above": "100KB"}, 1000, False, "1 of 1 are unfinished"),
        ({}, 1000, False, "1 of 101 are unfinished"),
        ({"above": "1MB"}, 1000, False, "load has no messages above 1 MB"),
        ({"traffic": "pair"}, 1000, False, "pair has no messages"),
    ],
)
def test_fct_slowdown_is_measured_for_the_given_sizes(
    which: dict[str, Any], at_most: float, passed: bool, detail: str
) -> None:
    """A message of n KB takes n times its time on an idle path.

    The 101st and largest is unfinished and counts only if its size is included. The idle
    time of the last is unknown.
    """
    n = np.arange(1, 101)
    requests = Requests(
        traffic=("load", "pair"),
        of=np.array([0] * 101 + [1]),
        start_ns=np.zeros(102, np.int64),
        end_ns=np.array([*(7 * n), UNFINISHED, 5]),
        carries=np.array([*(1000 * n), 101_000, 5000]),
        alone_ns=np.array([7] * 101 + [UNKNOWN]),
    )
    check = {"fct_slowdown": {"traffic": "load", "at_most": at_most} | which}
    result = one(check, replace(run(), requests=requests))
    assert (result.passed, result.detail) == (passed, detail)


def stored() -> Requests:
    """Ten reads of 4 KB, one after another for 10 us each, and a write of 20 us meanwhile."""
    starts = np.arange(0, 100_000, 10_000)
    return Requests(
        traffic=("disk",),
        of=np.zeros(11, np.int64),
        start_ns=np.append(starts, 50_000),
        end_ns=np.append(starts + 10_000, 70_000),
        asks=np.array([Asks.READ] * 10 + [Asks.WRITE]),
        carries=np.full(11, 4000),
    )


@pytest.mark.parametrize(
    ("kind", "bounds", "passed", "detail"),
    [
        ("iops", {"way": "read", "at_least": 100_000}, True, "100,000"),
        ("iops", {"way": "read", "at_most": 99_999}, False, "100,000"),
        ("iops", {"way": "write", "is": 10_000}, True, "10,000"),
        ("bandwidth", {"way": "read", "at_least": "3200Mbit"}, True, "3.2 Gb/s"),
        ("bandwidth", {"way": "write", "at_least": "321Mbit"}, False, "320 Mb/s"),
        ("latency", {"way": "read", "percent": 100, "at_most": "10us"}, True, "10 us, n 10"),
        ("latency", {"way": "write", "at_most": "19us"}, False, "20 us, n 1"),
        ("latency", {"percent": 100, "at_most": "20us"}, True, "20 us, n 11"),
    ],
)
def test_iops_refer_to_the_run_time_of_the_entry(
    kind: str, bounds: dict[str, Any], passed: bool, detail: str
) -> None:
    """The run time is 100 us for both directions. Each has its own bytes and latencies."""
    result = one({kind: {"traffic": "disk"} | bounds}, replace(run(), requests=stored()))
    assert (result.passed, result.detail) == (passed, detail)


@pytest.mark.parametrize("kind", ["iops", "bandwidth", "latency"])
def test_a_check_of_absent_writes_fails(kind: str) -> None:
    """This holds for any bound."""
    requests = replace(stored(), asks=np.full(11, Asks.READ))
    bound = {"iops": 0, "bandwidth": "1Mbit", "latency": "1s"}[kind]
    check = {kind: {"traffic": "disk", "way": "write", "at_most": bound}}
    result = one(check, replace(run(), requests=requests))
    assert (result.passed, result.detail) == (False, "disk has no writes")


@pytest.mark.parametrize(
    ("check", "detail"),
    [
        ({"completed": "all"}, "1 of 8 unfinished: victim"),
        ({"goodput": {"flow": "victim", "at_most": "1Gbit"}}, "unfinished: victim"),
        ({"finish": {"flow": "victim", "by": "1s"}}, "unfinished: victim"),
    ],
)
def test_an_unfinished_flow_fails_all_its_checks(check: dict[str, Any], detail: str) -> None:
    """Even a check with only an upper bound on goodput fails."""
    result = one(check, run(victim_ns=None))
    assert (result.passed, result.detail) == (False, detail)


SHARED = {
    "leaf1:h1": {"np_cnp_sent": 40},
    "leaf1:h2": {"rp_cnp_handled": 30},
    "leaf1:h3": {"rp_cnp_handled": 9},
}


@pytest.mark.parametrize(
    ("check", "passed", "detail"),
    [
        ({"counter": {"name": "rp_cnp_handled", "at_least": 39}}, True, "39"),
        ({"counter": {"name": "rp_cnp_handled", "at": "leaf1:h2", "at_most": 29}}, False, "30"),
        ({"counter": {"name": "cnp", "at": "total", "is": 42}}, True, "42"),
        ({"counter": {"name": "cpn", "at_most": 0}}, False, "this run has no counter cpn"),
        (
            {"agreement": {"name": "rp_cnp_handled", "like": "np_cnp_sent", "within": "2.5%"}},
            True,
            "39 and 40",
        ),
        (
            {"agreement": {"name": "rp_cnp_handled", "like": "np_cnp_sent", "within": "2%"}},
            False,
            "39 and 40",
        ),
    ],
)
def test_counters_are_summed_over_places(check: dict[str, Any], passed: bool, detail: str) -> None:
    """Without names all places count. An unknown counter fails and is not 0."""
    result = one(check, run(ports=SHARED, totals={"cnp": 42}))
    assert (result.passed, result.detail) == (passed, detail)


@pytest.mark.parametrize(
    ("check", "passed", "detail"),
    [
        # Flows of 1 MB that grow evenly: seven over 600 us, the victim over 100 us.
        ({"rate": {"flow": "victim", "until": "50us", "is": "80Gbit", "within": "1%"}}, True, "80"),
        ({"rate": {"traffic": "incast", "until": "300us", "at_least": "94Gbit"}}, False, "93.33"),
        ({"rate": {"flow": "victim", "after": "200us", "at_most": "1Mbit"}}, True, "0"),
        ({"fairness": {"traffic": "incast", "at_least": 0.99}}, True, "1.000"),
        (
            {"share": {"flow": "incast.h2-h1", "traffic": "incast", "is": "1/7", "within": "1%"}},
            True,
            "14.29 %",
        ),
        (
            {"share": {"flow": "incast.h2-h1", "traffic": "incast", "is": "1/6", "within": "9%"}},
            False,
            "14.29 %",
        ),
        ({"queue": {"port": "leaf1:h1", "statistic": "max", "at_most": "199KB"}}, True, "199 KB"),
        ({"queue": {"port": "leaf1:h1", "statistic": "max", "at_most": "198KB"}}, False, "199 KB"),
        ({"queue": {"port": "leaf1:h1", "is": "100KB", "within": "10%"}}, True, ""),
    ],
)
def test_a_part_of_the_run_is_measured(check: dict[str, Any], passed: bool, detail: str) -> None:
    """The values come from the samples, also for unfinished flows."""
    result = one(check, run(queues={"leaf1:h1": 200_000}))
    assert result.passed is passed
    assert result.detail.startswith(detail)


def test_jains_index_of_unequal_flows() -> None:
    """Shares of 1/2, 1/6, 1/6 and 1/6 give 3/4."""
    ends = {"incast.h2-h1": 100_000} | {f"incast.h{n}-h1": 300_000 for n in (3, 4, 5)}
    traffic = [{**INCAST["traffic"][0], "from": "h2-h5"}]
    measured = record(spec(traffic=traffic, verify=[]), ends_ns=ends)
    check = {"fairness": {"traffic": "incast", "until": "100us", "is": 0.75, "within": "1%"}}
    assert one(check, measured).passed


def test_the_virtual_clock_may_have_its_own_tolerance() -> None:
    """It has no error of its own, so its tolerance may be smaller."""
    check = {"rate": {"flow": "victim", "until": "50us", "is": "79Gbit", "within": "5%"}}
    check["rate"]["within_virtual"] = "0.5%"
    assert one(check, run(clock="real")).passed
    assert not one(check, run(clock="virtual")).passed


def test_lossless_counts_its_own_priority_only() -> None:
    """Drops of another priority do not matter."""
    counters = {"prio3_dropped_packets": 2, "prio5_dropped_packets": 7}
    measured = run(ports={"leaf1:h1": counters})
    assert one({"lossless": {"priority": 3}}, measured).detail == "2 packets dropped"
    assert one({"lossless": {"priority": 0}}, measured).passed


WATCHED: Counters = {
    "prio3_dropped_packets": 6_905,
    "prio3_PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS": 6_900,
    "prio3_PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS": 5,
}


def test_lossless_fails_if_the_watchdog_dropped() -> None:
    """Drops by the watchdog are drops."""
    outcome = one({"lossless": {"priority": 3}}, run(ports={"leaf1:h1": WATCHED}))
    told = "6,905 packets dropped, of which 6,905 by the PFC watchdog"
    assert (outcome.passed, outcome.detail) == (False, told)


@pytest.mark.parametrize(("others", "passed"), [(0, True), (1, False)])
def test_a_check_may_exclude_watchdog_drops(others: int, passed: bool) -> None:
    """The check passes only if there are no other drops, and its text names the exception."""
    counters = WATCHED | {"prio3_dropped_packets": 6_905 + others}
    outcome = one(
        {"lossless": {"priority": 3, "except": "watchdog"}}, run(ports={"leaf1:h1": counters})
    )
    assert outcome.check == "priority 3 is lossless except for packets that the PFC watchdog drops"
    told = f"{others} packets dropped, plus 6,905 by the PFC watchdog"
    assert (outcome.passed, outcome.detail) == (passed, told)


def test_lossless_includes_drops_by_hosts() -> None:
    """A NIC drops a damaged packet."""
    measured = run(hosts={"h1": {"prio3_dropped_packets": 1}})
    assert not one({"lossless": {"priority": 3}}, measured).passed


def test_lossless_on_infiniband_counts_every_drop() -> None:
    """InfiniBand has no priorities, so drops of all lanes and for all reasons count."""
    measured = run("ib", ports={"leaf1:h1": {"dropped_packets": 2}})
    outcome = one({"lossless": {"priority": 3}}, measured)
    assert (outcome.passed, outcome.detail) == (False, "2 packets dropped")


def test_a_failed_check_has_the_text_of_its_author() -> None:
    """A passed check does not."""
    check = {"goodput": {"flow": "victim", "at_least": "90Gbit"}, "fail": "head of line blocked"}
    assert one(check, run()).detail == "80 Gb/s: head of line blocked"
    assert one(check, run(victim_ns=80_000)).detail == "100 Gb/s"


def test_an_inconclusive_run_is_not_judged() -> None:
    """Neither a pass nor a failure would be meaningful."""
    result = one({"completed": "all"}, run(fidelity=INCONCLUSIVE))
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
def test_exit_code_of_checks_and_fidelity(
    fidelity: Fidelity, victim_ns: int | None, code: ExitCode
) -> None:
    """Inconclusive takes precedence over failed."""
    measured = run(victim_ns=victim_ns, fidelity=fidelity)
    assert exit_code([summarise(measured)], check_results(spec().verify, measured)[:1]) is code
