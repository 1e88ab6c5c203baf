"""What two looks at a lab tell has happened in between."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from emu.measure.counter_table import NIC, PORT
from emu.measure.lab_snapshot import FlowSnapshot, LabSnapshot, LinkChange, SeenFault, TrafficState
from emu.measure.recording import Deadlock
from emu.measure.snapshot_diff import Pauses, events_between

NO_TRAFFIC = TrafficState(0, "none", None, ())
FLOW = {"name": "flow", "src": "h1", "dst": "h2", "bytes": 9, "start_ns": 0, "end_ns": 7}


def _look(
    time_ns: int,
    traffic: TrafficState = NO_TRAFFIC,
    host: Mapping[str, int] | None = None,
    **port: list[int],
) -> LabSnapshot:
    """`port`: its counters, as far as they are not 0; `host`: likewise, of its NIC."""
    zeros = {name: [0] * width for name, width in PORT.cells.items()}
    nic = {name: 0 for name, _ in NIC.cells.items()}
    hosts = {"h1": {**nic, **host}} if host is not None else {}
    return LabSnapshot(time_ns, {"leaf1:h1": {**zeros, **port}}, hosts, traffic)


def _told(before: LabSnapshot, after: LabSnapshot) -> list[dict[str, object]]:
    return [event.to_json() for event in events_between(before, after)]


def test_nothing_new_is_no_event() -> None:
    look = _look(1, ecn_marked=[5] * 8)
    assert _told(look, look) == []


def test_what_grew_is_an_event_with_its_class_and_count() -> None:
    """At the time of the second look."""
    before = _look(1, tx_pause=[0, 0, 0, 4, 0, 0, 0, 0])
    after = _look(9, tx_pause=[0, 0, 0, 6, 0, 0, 0, 0], no_route=[1])
    assert _told(before, after) == [
        {"time_ns": 9, "event": "pause-sent", "where": "leaf1:h1", "priority": 3, "count": 2},
        {"time_ns": 9, "event": "no-route", "where": "leaf1:h1", "count": 1},
    ]


def test_every_reason_for_a_drop_is_an_event() -> None:
    """And nothing that a fabric drops is silent."""
    quiet = _look(1)
    for row in PORT.drops():
        counted: dict[str, Any] = {row.name: [1] + [0] * (row.cells - 1)}
        (event,) = _told(quiet, _look(2, **counted))
        assert (event["where"], event["count"]) == ("leaf1:h1", 1)


CUT = SeenFault("cut", "link-down", "leaf1:spine1", 12, None, cables=("leaf1:spine1",))
DOWN = LinkChange(12, ("leaf1:spine1",), None)


def test_a_lost_link_is_told_with_its_cause() -> None:
    """At its own time; and when routes avoid it, once they do."""
    calm, cut = _look(10), replace(_look(20), faults=(CUT,), links=(DOWN,))
    begun, down = _told(calm, cut)
    assert begun["event"] == "fault-began"
    told = {"time_ns": 12, "event": "link-down", "where": "leaf1:spine1", "cause": "the fault cut"}
    assert down == told
    converged = replace(cut, time_ns=40, links=(replace(DOWN, in_force_ns=32),))
    told = {"time_ns": 32, "event": "routes-converged", "where": ""}
    assert _told(cut, converged) == [{**told, "cause": "leaf1:spine1 down", "change_ns": 12}]
    assert _told(converged, replace(converged, time_ns=60)) == []


def test_routes_that_are_known_are_told_in_their_time() -> None:
    """Not when the lab has them, but when they are in force."""
    known = replace(_look(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=32),))
    assert _told(known, replace(known, time_ns=31)) == []
    (event,) = _told(known, replace(known, time_ns=33))
    assert event["event"] == "routes-converged"


def test_a_link_that_is_back_is_told_with_what_ended() -> None:
    cut = replace(_look(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=15),))
    back = replace(_look(40), links=(*cut.links, LinkChange(35, (), None)))
    cleared, up = _told(cut, back)
    assert cleared["event"] == "fault-cleared"
    told = {"time_ns": 35, "event": "link-up", "where": "leaf1:spine1"}
    assert up == {**told, "cause": "the fault cut is over"}


def test_a_deadlock_is_told_once() -> None:
    circle = Deadlock(15, 3, ("s1:s2", "s2:s1"))
    stuck = replace(_look(20), deadlocks=(circle,))
    (event,) = _told(_look(10), stuck)
    assert event == {
        "time_ns": 15,
        "event": "deadlock",
        "where": "",
        "priority": 3,
        "ports": "s1:s2 s2:s1",
    }
    assert _told(stuck, replace(stuck, time_ns=30)) == []


def test_a_queue_pair_that_fails_is_told_once() -> None:
    """And again when it fails in the next workload."""
    running = TrafficState(1, "running", None, ())
    well = replace(_look(10, running), flows={"flow": FlowSnapshot(9, 4)})
    failed = replace(_look(20, running), flows={"flow": FlowSnapshot(9, 4, "IBV_WC_RETRY_EXC_ERR")})
    (event,) = _told(well, failed)
    assert (event["event"], event["where"]) == ("queue-pair-failed", "flow")
    assert event["status"] == "IBV_WC_RETRY_EXC_ERR"
    assert _told(failed, replace(failed, time_ns=30)) == []
    anew = replace(failed, time_ns=40, traffic=replace(running, number=2))
    assert "queue-pair-failed" in [event["event"] for event in _told(failed, anew)]


@pytest.mark.parametrize(("hosts", "kind"), [({"h1"}, "pause-storm"), (set(), "standing-pause")])
def test_a_pause_without_a_break_begins_and_ends(hosts: set[str], kind: str) -> None:
    """A host that does it is a storm. Half of the time is neither."""
    pauses = Pauses({"leaf1:h1": "h1"}, hosts)

    def paused(time_ns: int, paused_ns: int) -> LabSnapshot:
        return _look(time_ns, rx_pause_duration=[0, 0, 0, paused_ns * 1000, 0, 0, 0, 0])

    looks = [paused(0, 0), paused(100, 50), paused(200, 150), paused(300, 250), paused(400, 300)]
    told = [event.to_json() for pair in itertools.pairwise(looks) for event in pauses.events(*pair)]
    where = {"where": "leaf1:h1", "priority": 3, "by": "h1"}
    assert told == [
        {"time_ns": 200, "event": f"{kind}-began", **where},
        {"time_ns": 400, "event": f"{kind}-ended", **where, "ns": 200},
    ]


def test_traffic_that_begins_anew_counts_from_zero() -> None:
    """Its NICs are new ones."""
    first = _look(1, TrafficState(1, "over", None, ()), {"np_cnp_sent": 9})
    again = _look(2, TrafficState(2, "running", None, ()), {"np_cnp_sent": 3})
    assert _told(first, again) == [
        {"time_ns": 2, "event": "traffic-started", "where": "", "number": 2},
        {"time_ns": 2, "event": "cnp-sent", "where": "h1", "count": 3},
    ]


def test_traffic_that_has_failed_is_told_of_once_with_the_reason() -> None:
    running = _look(1, TrafficState(1, "running", None, ()))
    failed = _look(2, TrafficState(1, "failed", None, (), error="the shim has not answered"))
    told = {"number": 1, "why": "the shim has not answered"}
    assert _told(running, failed) == [
        {"time_ns": 2, "event": "traffic-failed", "where": "", **told}
    ]
    assert _told(failed, failed) == []


def test_flows_are_told_of_when_traffic_is_over() -> None:
    """Those that failed as failed; without times, where the machine did not keep up."""
    flows = ({**FLOW, "completed": True}, {**FLOW, "name": "lost", "completed": False})
    running = _look(1, TrafficState(1, "running", None, ()))
    over = _look(2, TrafficState(1, "over", None, flows))
    assert [(e["event"], e["where"]) for e in _told(running, over)] == [
        ("traffic-over", ""),
        ("flow-completed", "flow"),
        ("flow-failed", "lost"),
    ]
    late = replace(over, traffic=replace(over.traffic, verdict="inconclusive"))
    first, *flow_events = _told(running, late)
    assert first["fidelity"] == "inconclusive"
    assert not [event for event in flow_events if "end_ns" in event]


STORM = SeenFault("mad", "pause-storm", "h3", at_ns=None, end_ns=None)
BEGUN = replace(STORM, at_ns=15)


@pytest.mark.parametrize(
    ("before", "after", "told"),
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
def test_a_fault_is_told_of_when_it_is_set_begins_ends_and_is_cleared(
    before: SeenFault | None, after: SeenFault | None, told: list[tuple[int, str]]
) -> None:
    """Looks at 10 and 20. The last two: its traffic ends, and is started anew."""
    first, second = (
        replace(_look(time_ns), faults=(fault,) if fault else ())
        for time_ns, fault in ((10, before), (20, after))
    )
    events = _told(first, second)
    assert sorted((event["time_ns"], event["event"]) for event in events) == told
    for event in events:
        assert (event["where"], event["kind"], event["place"]) == ("mad", "pause-storm", "h3")


def test_a_fault_is_cleared_no_later_than_its_link_is_back() -> None:
    """And told before it: causes come first."""
    cut = replace(_look(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=15),))
    back = replace(_look(40), links=(*cut.links, LinkChange(35, (), None)))
    told = [(event["time_ns"], event["event"]) for event in _told(cut, back)]
    assert told == [(35, "fault-cleared"), (35, "link-up")]


def test_links_that_change_after_the_counters_were_posted_have_their_causes_first() -> None:
    cut = replace(_look(11), faults=(CUT,), links=(DOWN,))
    told = [(event["time_ns"], event["event"]) for event in _told(_look(10), cut)]
    assert told == [(12, "fault-began"), (12, "link-down")]
    assert _told(cut, replace(cut, time_ns=30)) == []


def test_events_are_told_by_their_time() -> None:
    before = replace(_look(10), faults=(CUT,), links=(DOWN,))
    links = (replace(DOWN, in_force_ns=18), LinkChange(25, (), 38))
    after = replace(_look(40, no_route=[1]), links=links, deadlocks=(Deadlock(15, 3, ()),))
    told = [(event["time_ns"], event["event"]) for event in _told(before, after)]
    assert told == [
        (15, "deadlock"),
        (18, "routes-converged"),
        (25, "fault-cleared"),
        (25, "link-up"),
        (38, "routes-converged"),
        (40, "no-route"),
    ]


def test_a_second_fault_of_a_link_that_is_down_changes_no_routes() -> None:
    """So that nothing has converged, and there is no cause to tell."""
    cut = replace(_look(20), faults=(CUT,), links=(replace(DOWN, in_force_ns=15),))
    again = replace(CUT, name="again", at_ns=25)
    links = (*cut.links, LinkChange(25, DOWN.down, 30))
    (began,) = _told(cut, replace(_look(40), faults=(CUT, again), links=links))
    assert (began["event"], began["where"]) == ("fault-began", "again")


def test_traffic_has_started_before_the_faults_that_come_with_it() -> None:
    mad = replace(BEGUN, place="h1")
    after = replace(_look(20, TrafficState(1, "running", None, ()), {}), faults=(mad,))
    told = [(event["time_ns"], event["event"]) for event in _told(_look(10), after)]
    assert told == [(15, "traffic-started"), (15, "fault-began")]
