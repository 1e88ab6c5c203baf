"""The events between two snapshots of a lab."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from emu.measure.counter_table import NIC, PORT
from emu.measure.lab_snapshot import FlowSnapshot, LabSnapshot, LinkChange, SeenFault, TrafficState
from emu.measure.records import Deadlock
from emu.measure.snapshot_diff import Pauses, events_between

NO_TRAFFIC = TrafficState(0, "none", None, ())
FLOW = {"name": "flow", "src": "h1", "dst": "h2", "bytes": 9, "start_ns": 0, "end_ns": 7}


def _snapshot(
    time_ns: int,
    traffic: TrafficState = NO_TRAFFIC,
    host: Mapping[str, int] | None = None,
    **port: list[int],
) -> LabSnapshot:
    """A snapshot. `port`: its counters that are not 0; `host`: those of its NIC."""
    zeros = {name: [0] * width for name, width in PORT.cells.items()}
    nic = {name: 0 for name, _ in NIC.cells.items()}
    hosts = {"h1": {**nic, **host}} if host is not None else {}
    return LabSnapshot(time_ns, {"leaf1:h1": {**zeros, **port}}, hosts, traffic)


def _events(before: LabSnapshot, after: LabSnapshot) -> list[dict[str, object]]:
    return [event.to_json() for event in events_between(before, after)]


def test_unchanged_counters_are_no_event() -> None:
    quiet = _snapshot(1, ecn_marked=[5] * 8)
    assert _events(quiet, quiet) == []


def test_counter_growth_is_an_event_with_priority() -> None:
    """The event has the growth, and the time of the second snapshot."""
    before = _snapshot(1, tx_pause=[0, 0, 0, 4, 0, 0, 0, 0])
    after = _snapshot(9, tx_pause=[0, 0, 0, 6, 0, 0, 0, 0], no_route=[1])
    assert _events(before, after) == [
        {"time_ns": 9, "event": "pause-sent", "where": "leaf1:h1", "priority": 3, "count": 2},
        {"time_ns": 9, "event": "no-route", "where": "leaf1:h1", "count": 1},
    ]


def test_every_reason_for_a_drop_is_an_event() -> None:
    """So the fabric drops nothing silently."""
    quiet = _snapshot(1)
    for row in PORT.drops():
        counted: dict[str, Any] = {row.name: [1] + [0] * (row.cells - 1)}
        (event,) = _events(quiet, _snapshot(2, **counted))
        assert (event["where"], event["count"]) == ("leaf1:h1", 1)


CUT = SeenFault("cut", "link-down", "leaf1:spine1", 12, None, cables=("leaf1:spine1",))
DOWN = LinkChange(12, ("leaf1:spine1",), None)


def test_link_down_has_its_cause_and_time() -> None:
    """And routes that avoid the link are reported when they are in force."""
    calm, cut = _snapshot(10), replace(_snapshot(20), faults=(CUT,), links=(DOWN,))
    begun, down = _events(calm, cut)
    assert begun["event"] == "fault-began"
    expected = {
        "time_ns": 12,
        "event": "link-down",
        "where": "leaf1:spine1",
        "cause": "the fault cut",
    }
    assert down == expected
    converged = replace(cut, time_ns=40, links=(replace(DOWN, in_force_ns=32),))
    expected = {"time_ns": 32, "event": "routes-converged", "where": ""}
    assert _events(cut, converged) == [{**expected, "cause": "leaf1:spine1 down", "change_ns": 12}]
    assert _events(converged, replace(converged, time_ns=60)) == []


def test_routes_converge_when_they_are_in_force() -> None:
    """Not already when the lab knows them."""
    known = replace(_snapshot(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=32),))
    assert _events(known, replace(known, time_ns=31)) == []
    (event,) = _events(known, replace(known, time_ns=33))
    assert event["event"] == "routes-converged"


def test_link_up_names_the_fault_that_ended() -> None:
    cut = replace(_snapshot(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=15),))
    back = replace(_snapshot(40), links=(*cut.links, LinkChange(35, (), None)))
    cleared, up = _events(cut, back)
    assert cleared["event"] == "fault-cleared"
    expected = {"time_ns": 35, "event": "link-up", "where": "leaf1:spine1"}
    assert up == {**expected, "cause": "the fault cut is over"}


def test_deadlock_is_reported_once() -> None:
    deadlock = Deadlock(15, 3, ("s1:s2", "s2:s1"))
    stuck = replace(_snapshot(20), deadlocks=(deadlock,))
    (event,) = _events(_snapshot(10), stuck)
    assert event == {
        "time_ns": 15,
        "event": "deadlock",
        "where": "",
        "priority": 3,
        "ports": "s1:s2 s2:s1",
    }
    assert _events(stuck, replace(stuck, time_ns=30)) == []


def test_failed_queue_pair_is_reported_once() -> None:
    """And again if it fails in the next workload."""
    running = TrafficState(1, "running", None, ())
    well = replace(_snapshot(10, running), flows={"flow": FlowSnapshot(9, 4)})
    failed = replace(
        _snapshot(20, running), flows={"flow": FlowSnapshot(9, 4, "IBV_WC_RETRY_EXC_ERR")}
    )
    (event,) = _events(well, failed)
    assert (event["event"], event["where"]) == ("queue-pair-failed", "flow")
    assert event["status"] == "IBV_WC_RETRY_EXC_ERR"
    assert _events(failed, replace(failed, time_ns=30)) == []
    anew = replace(failed, time_ns=40, traffic=replace(running, number=2))
    assert "queue-pair-failed" in [event["event"] for event in _events(failed, anew)]


@pytest.mark.parametrize(("hosts", "kind"), [({"h1"}, "pause-storm"), (set(), "standing-pause")])
def test_continuous_pause_begins_and_ends(hosts: set[str], kind: str) -> None:
    """From a host it is a storm. A pause of half the time is none."""
    pauses = Pauses({"leaf1:h1": "h1"}, hosts)

    def paused(time_ns: int, paused_ns: int) -> LabSnapshot:
        return _snapshot(time_ns, rx_pause_duration=[0, 0, 0, paused_ns * 1000, 0, 0, 0, 0])

    snapshots = [
        paused(0, 0),
        paused(100, 50),
        paused(200, 150),
        paused(300, 250),
        paused(400, 300),
    ]
    reported = [
        event.to_json() for pair in itertools.pairwise(snapshots) for event in pauses.events(*pair)
    ]
    where = {"where": "leaf1:h1", "priority": 3, "by": "h1"}
    assert reported == [
        {"time_ns": 200, "event": f"{kind}-began", **where},
        {"time_ns": 400, "event": f"{kind}-ended", **where, "ns": 200},
    ]


def test_restarted_traffic_counts_from_zero() -> None:
    """It has new NICs."""
    first = _snapshot(1, TrafficState(1, "over", None, ()), {"np_cnp_sent": 9})
    again = _snapshot(2, TrafficState(2, "running", None, ()), {"np_cnp_sent": 3})
    assert _events(first, again) == [
        {"time_ns": 2, "event": "traffic-started", "where": "", "number": 2},
        {"time_ns": 2, "event": "cnp-sent", "where": "h1", "count": 3},
    ]


def test_failed_traffic_is_reported_once_with_reason() -> None:
    running = _snapshot(1, TrafficState(1, "running", None, ()))
    failed = _snapshot(2, TrafficState(1, "failed", None, (), error="the shim has not answered"))
    expected = {"number": 1, "why": "the shim has not answered"}
    assert _events(running, failed) == [
        {"time_ns": 2, "event": "traffic-failed", "where": "", **expected}
    ]
    assert _events(failed, failed) == []


def test_flows_are_reported_at_the_end_of_traffic() -> None:
    """Failed flows as failed; without times if the verdict is inconclusive."""
    flows = ({**FLOW, "completed": True}, {**FLOW, "name": "lost", "completed": False})
    running = _snapshot(1, TrafficState(1, "running", None, ()))
    over = _snapshot(2, TrafficState(1, "over", None, flows))
    assert [(e["event"], e["where"]) for e in _events(running, over)] == [
        ("traffic-over", ""),
        ("flow-completed", "flow"),
        ("flow-failed", "lost"),
    ]
    late = replace(over, traffic=replace(over.traffic, verdict="inconclusive"))
    first, *flow_events = _events(running, late)
    assert first["fidelity"] == "inconclusive"
    assert not [event for event in flow_events if "end_ns" in event]


STORM = SeenFault("storm", "pause-storm", "h3", at_ns=None, end_ns=None)
BEGUN = replace(STORM, at_ns=15)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, STORM, [(20, "fault-set")]),
        (STORM, STORM, []),
        (STORM, BEGUN, [(15, "fault-began")]),
        (None, BEGUN, [(15, "fault-began")]),
        (replace(BEGUN, at_ns=5), replace(BEGUN, at_ns=5), []),
        (replace(BEGUN, at_ns=25), replace(BEGUN, at_ns=25), []),
        (BEGUN, BEGUN, [(15, "fault-began")]),
        (None, replace(BEGUN, end_ns=16), [(15, "fault-began"), (16, "fault-over")]),
        (
            replace(STORM, at_ns=5, end_ns=17),
            replace(STORM, at_ns=5, end_ns=17),
            [(17, "fault-over")],
        ),
        (replace(BEGUN, at_ns=5), None, [(20, "fault-cleared")]),
        (STORM, None, [(20, "fault-cleared")]),
        (replace(STORM, at_ns=5, end_ns=7), None, []),
        (replace(BEGUN, at_ns=5), STORM, [(20, "fault-over")]),
        (replace(BEGUN, at_ns=5), BEGUN, [(15, "fault-began"), (20, "fault-over")]),
    ],
)
def test_fault_is_reported_when_set_begun_over_and_cleared(
    before: SeenFault | None, after: SeenFault | None, expected: list[tuple[int, str]]
) -> None:
    """Between snapshots at 10 and 20. In the last two cases its traffic ends, and is started
    again."""
    first, second = (
        replace(_snapshot(time_ns), faults=(fault,) if fault else ())
        for time_ns, fault in ((10, before), (20, after))
    )
    events = _events(first, second)
    assert sorted((event["time_ns"], event["event"]) for event in events) == expected
    for event in events:
        assert (event["where"], event["kind"], event["place"]) == ("storm", "pause-storm", "h3")


def test_fault_is_cleared_before_its_link_is_up() -> None:
    """Both at the same time, with the cause first."""
    cut = replace(_snapshot(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=15),))
    back = replace(_snapshot(40), links=(*cut.links, LinkChange(35, (), None)))
    reported = [(event["time_ns"], event["event"]) for event in _events(cut, back)]
    assert reported == [(35, "fault-cleared"), (35, "link-up")]


def test_fault_precedes_its_link_change() -> None:
    cut = replace(_snapshot(11), faults=(CUT,), links=(DOWN,))
    reported = [(event["time_ns"], event["event"]) for event in _events(_snapshot(10), cut)]
    assert reported == [(12, "fault-began"), (12, "link-down")]
    assert _events(cut, replace(cut, time_ns=30)) == []


def test_events_are_in_order_of_time() -> None:
    before = replace(_snapshot(10), faults=(CUT,), links=(DOWN,))
    links = (replace(DOWN, in_force_ns=18), LinkChange(25, (), 38))
    after = replace(_snapshot(40, no_route=[1]), links=links, deadlocks=(Deadlock(15, 3, ()),))
    reported = [(event["time_ns"], event["event"]) for event in _events(before, after)]
    assert reported == [
        (15, "deadlock"),
        (18, "routes-converged"),
        (25, "fault-cleared"),
        (25, "link-up"),
        (38, "routes-converged"),
        (40, "no-route"),
    ]


def test_second_fault_of_a_down_link_changes_no_routes() -> None:
    """So no convergence is reported."""
    cut = replace(_snapshot(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=15),))
    again = replace(CUT, name="again", at_ns=25)
    links = (*cut.links, LinkChange(25, DOWN.down, 30))
    (began,) = _events(cut, replace(_snapshot(40), faults=(CUT, again), links=links))
    assert (began["event"], began["where"]) == ("fault-began", "again")


def test_traffic_starts_before_its_faults() -> None:
    storm = replace(BEGUN, place="h1")
    after = replace(_snapshot(20, TrafficState(1, "running", None, ()), {}), faults=(storm,))
    reported = [(event["time_ns"], event["event"]) for event in _events(_snapshot(10), after)]
    assert reported == [(15, "traffic-started"), (15, "fault-began")]
