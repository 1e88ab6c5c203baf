"""SONiC's test plan of PFC for lossless traffic (sonic-mgmt, PFC_lossless_test_plan.md).

Times: 10 s of the plan are the time of 400 packets of each flow here, some 1 ms at 100 Gb/s.
Criteria are shares and counts, which do not depend on how long they are counted.
"""

from __future__ import annotations

from emu.plans.bench import LARGE, START_NS, Bench, Storm
from emu.plans.case import Case, Measured, NotApplicable, all_hold
from emu.plans.congestion import burst_pauses_before_loss, marks_before_pauses
from emu.plans.pauses import TimedFrame, pfc_frame
from emu.plans.plan import Plan, register
from emu.plans.storms import (
    RATE_TOLERANCE,
    flat,
    nothing_lost,
    nothing_sent,
    paused_port,
    stormed,
)
from emu.plans.traffic import WIRE_OVERHEAD, payload_of_frame
from emu.plans.watchdogs import circular_pauses, no_false_detection, storm_is_handled

_FRAMES = (64, 512, 1518, LARGE + 62)
_IMIX = ((7, 64), (4, 594), (1, 1518))
"""Shares and lengths of frames of the simple IMIX."""
_RESUME_NS = 1_000_000
_STEP_NS = 20
_LONGER_THAN_PAUSE_BITS = 2000
"""Longer than a PFC frame, 672 bits, and a pause of one quantum, 512 bits."""


def _one(bench: Bench) -> Measured:
    return paused_port(bench, bench.lossless[:1])


def _two(bench: Bench) -> Measured:
    return paused_port(bench, bench.two_lossless())


def _resume(bench: Bench) -> Measured:
    """Pauses until one third, then frames with duration 0."""
    priority, port = bench.lossless[0], bench.port_of(bench.receiver)
    streams, window = bench.streams(bench.priorities), bench.window_ns()
    end = START_NS + window // 3
    storm = Storm(bench.receiver, (priority,), 0, end)
    with bench.trial(streams, for_ns=window * 3, storms=[storm]) as trial:
        trial.run_until(end)
        paused = nothing_sent(trial.counters(port), (priority,))
        resumed = trial.wait_for(
            lambda: trial.count(port, "tx_packets", priority) > 0, end + _RESUME_NS, _STEP_NS
        )
        trial.run_until(end + window // 2)
        before = trial.counters(port)
        trial.run_until(end + window * 3 // 2)
        packets = trial.count(port, "tx_packets", priority) - before["tx_packets"][priority]
        lost = nothing_lost(trial, bench.lossless)
    share = packets / (streams[0].packets_per_ns * window)
    latency = "never sent again" if resumed is None else f"sent again after {resumed - end} ns"
    return all_hold(
        paused,
        (resumed is not None, latency),
        (share >= 1 - RATE_TOLERANCE, f"then {share:.1%} of its rate, with what had waited"),
        lost,
    )


def _all_ports(bench: Bench) -> Measured:
    """Each tester sends to the next one, and all pause."""
    testers = bench.testers
    if len(testers) < 2:
        testers = [*bench.senders[:1], *testers]
    pairs = [*zip(testers, [*testers[1:], testers[0]], strict=True)]
    streams = flat(
        bench.streams(bench.priorities, source=source, to=to, name=f"{source}-p")
        for source, to in pairs
    )
    window = bench.window_ns()
    end = START_NS + window
    storms = [Storm(host, bench.lossless, 0, end + window) for host in testers]
    with bench.trial(streams, for_ns=window, storms=storms) as trial:
        trial.run_until(end)
        ports = {bench.port_of(host): trial.counters(bench.port_of(host)) for host in testers}
        sent = sum(one["tx_packets"][p] for one in ports.values() for p in bench.lossless)
        down = sum(one["link_downed"][0] for one in ports.values())
        return all_hold(
            (sent == 0, f"lossless priorities of {len(ports)} ports received {sent} packets"),
            nothing_lost(trial, bench.priorities),
            (down == 0, f"{down} links lost"),
        )


def _frame_sizes(bench: Bench) -> Measured:
    """A run for each size."""
    sizes = {
        size: paused_port(bench, bench.lossless[:1], payload=payload_of_frame(size))
        for size in _FRAMES
    }
    wrong = [f"{size} B: {one.text}" for size, one in sizes.items() if not one.passed]
    return Measured(not wrong, "; ".join(wrong) or f"all four sizes: {sizes[_FRAMES[-1]].text}")


def _imix(bench: Bench) -> Measured:
    """A flow of each length for each priority, by its share of the bytes."""
    payloads = {payload_of_frame(size): share for share, size in _IMIX}
    total = sum(share * (payload + WIRE_OVERHEAD) for payload, share in payloads.items())
    streams = flat(
        bench.streams(
            bench.priorities,
            payload=payload,
            share=share * (payload + WIRE_OVERHEAD) / total / 8,
            name=f"b{payload}-p",
        )
        for payload, share in payloads.items()
    )
    return all_hold(*stormed(bench, streams, bench.lossless[:1], bench.window_ns()))


def _link_flap(bench: Bench) -> Measured:
    """The receiver's cable is pulled while it pauses, and comes back when the storm is over."""
    priority, port = bench.lossless[0], bench.port_of(bench.receiver)
    streams, window = bench.streams(bench.priorities), bench.window_ns()
    down, up = START_NS + window // 4, START_NS + window // 2
    storm = Storm(bench.receiver, (priority,), 0, up)
    fault = {"at": f"{down}ns", "for": f"{up - down}ns", "link-down": {"cable": port}}
    with bench.trial(streams, for_ns=window * 4, storms=[storm], faults=[fault]) as trial:
        trial.run_until(down)
        paused = nothing_sent(trial.counters(port), (priority,))
        trial.run_until(up + window)
        before = trial.counters(port)
        trial.run_until(up + window * 2)
        after = trial.counters(port)
    gained = [after["tx_packets"][p] - before["tx_packets"][p] for p in bench.priorities]
    offered = streams[0].packets_per_ns * window
    shares = {p: count / offered for p, count in zip(bench.priorities, gained, strict=True)}
    worst = min(shares, key=lambda p: shares[p])
    return all_hold(
        paused,
        (
            shares[worst] >= 1 - RATE_TOLERANCE,
            f"afterwards every queue has {shares[worst]:.1%} of its rate or more (the least: "
            f"priority {worst})",
        ),
    )


def _different_asics(bench: Bench) -> Measured:
    raise NotApplicable("it needs ports of two ASICs in one switch, and emulated switches have one")


def _count_pauses(bench: Bench) -> Measured:
    """A known number of frames. Each pause is over before the next one arrives."""
    priority, port, known = bench.lossless[0], bench.port_of(bench.receiver), 1000
    streams, apart = bench.streams(bench.priorities), _LONGER_THAN_PAUSE_BITS * 10**9
    step = max(200, apart // bench.line_bps)
    end = START_NS + (known + 2) * step
    frames = [
        TimedFrame(START_NS + n * step, bench.nic_of(bench.receiver), pfc_frame([priority], 1))
        for n in range(known)
    ]
    with bench.trial(streams, for_ns=end - START_NS, frames=frames) as trial:
        trial.run_until(end)
        counters = trial.counters(port)
    received, obeyed = counters["rx_pause"], counters["rx_pause_transition"][priority]
    others = sum(received) - received[priority]
    return all_hold(
        (received[priority] == known, f"RxPfc[{priority}] {received[priority]} of {known} sent"),
        (others == 0, f"others {others}"),
        (obeyed == known, f"{obeyed} obeyed"),
    )


_STORM = "a receiver pauses 3 from before the traffic on; 8 flows, one per priority, line/8 each"
_CRITERION = "3 receives nothing; the others have line/8 and no loss; RxPfc[3] > 0, others 0"

register(
    Plan(
        name="sonic-lossless",
        title="SONiC: PFC, lossless traffic",
        source="sonic-mgmt, docs/testplan/PFC_lossless_test_plan.md (pull request 25476)",
        scaling="10 s of the plan are the time of 400 packets of each flow, some 1 ms at 100 Gb/s; "
        "the watchdog keeps the fabric's own times. 3 and 4 stand for the first two lossless "
        "priorities of the switch.",
        cases=(
            Case("L01", "One priority is paused", "P0", _STORM, _CRITERION, "0 exact; 2 %", _one),
            Case(
                "L02",
                "Two priorities are paused",
                "P0",
                "as L01 with 3 and 4",
                "3 and 4 receive nothing; the others as in L01",
                "0 exact; 2 %",
                _two,
            ),
            Case(
                "L03",
                "A frame with duration 0 ends the pause",
                "P0",
                "3 is paused, then one frame with duration 0",
                "nothing, then line/8 or more; the time to resume is recorded",
                "2 %; < 1000 us",
                _resume,
            ),
            Case(
                "L05",
                "All ports are paused at once",
                "P0",
                "each port sends to the next one and pauses its lossless priorities",
                "lossless priorities receive nothing, no loss, no link lost",
                "exact",
                _all_ports,
            ),
            Case(
                "L06",
                "Sizes of frames",
                "P1",
                "L01 with frames of 64 (66 with the least RDMA payload), 512, 1518 and 4158 B, the "
                "longest of an RDMA NIC, in place of 9216 B",
                "as L01, with each size",
                "0 exact; 2 %",
                _frame_sizes,
            ),
            Case(
                "L07",
                "IMIX",
                "P1",
                "L01 with 7:4:1 frames of 64, 594 and 1518 B",
                "as L01",
                "0 exact; 2 %",
                _imix,
            ),
            Case(
                "L08",
                "A burst above the drain rate",
                "P1",
                "two senders, each at the line's rate on 3, to one receiver",
                "TxPfc[3] > 0 and no loss; the use of headroom is recorded",
                "exact",
                burst_pauses_before_loss,
                hosts=3,
            ),
            Case(
                "L09",
                "Marks before pauses",
                "P1",
                "two senders on 3, their load ramped up to twice the line",
                "CE before the first pause, as the load grows; no loss",
                "order",
                marks_before_pauses,
                hosts=3,
            ),
            Case(
                "L10",
                "Circular pauses",
                "P2",
                "each port sends to the next one on 3, and all pause it; watchdog on",
                "every stuck port is found within detection + 2 polls, and sends again after the "
                "pauses",
                "time",
                circular_pauses,
            ),
            Case(
                "L11",
                "The link is lost during a pause",
                "P2",
                "L01, the receiver's link down and up meanwhile",
                "every priority is back at its rate; no queue is stuck",
                "2 %",
                _link_flap,
            ),
            Case(
                "L12",
                "The watchdog leaves short pauses alone",
                "P1",
                "watchdog on; pauses of 70 % of the detection time, 5 times",
                "no storm is reported, and nothing is lost",
                "0 exact",
                no_false_detection,
            ),
            Case(
                "L13",
                "The watchdog ends a storm",
                "P1",
                "watchdog on; one storm, longer than the detection time",
                "found within the detection time, its action takes effect, restored within the "
                "restoration time",
                "2 polls each",
                storm_is_handled,
            ),
            Case(
                "L14",
                "Ingress and egress on different ASICs",
                "P1",
                "L01 between ports of two ASICs",
                "as L01",
                "0 exact; 2 %",
                _different_asics,
            ),
            Case(
                "L15",
                "PFC frames are counted",
                "P0",
                "1000 PFC frames on 3 with the shortest pause",
                "RxPfc[3] = 1000; others 0; each pause is obeyed (ON2OFF[3] = 1000)",
                "exact",
                _count_pauses,
            ),
        ),
    )
)
