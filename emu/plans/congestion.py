"""What cases on buffers and marks share: queues that grow, by senders or by a pause."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from emu.plans.bench import START_NS, Bench, Storm
from emu.plans.case import Measured, NotApplicable, all_hold
from emu.plans.storms import flat, nothing_lost
from emu.plans.traffic import GAPS, WIRE_OVERHEAD, Stream
from emu.plans.trial import Trial
from emu.spec.switch import Curve

_PAYLOAD = 64
STORED = _PAYLOAD + WIRE_OVERHEAD - GAPS - 4
"""Bytes of a packet in a queue that is filled: without preamble, gap and FCS. Packets are small, so
that there are many to be marked."""
_SEEDS = 4
_DEVIATIONS = 4
_FIRST, _STEP, _STEPS = 0.9, 0.05, 22
"""The ramp: its first load, and how many steps of which size follow, as shares of the line."""


def burst_pauses_before_loss(bench: Bench) -> Measured:
    """Two senders fill the buffer; the switch must pause them in time."""
    priority = bench.lossless[0]
    streams = _two_senders(bench, priority, share=1.0)
    for_ns = _time_to_fill(bench)
    with bench.trial(streams, for_ns=for_ns) as trial:
        trial.run_until(START_NS + for_ns)
        pauses = _pauses_to(trial, bench, priority)
        used = max(
            trial.count(bench.port_of(host), "headroom_peak_bytes", priority)
            for host in bench.testers
        )
        return all_hold(
            (pauses > 0, f"TxPfc[{priority}] {pauses}, headroom used {used} B"),
            nothing_lost(trial, (priority,)),
        )


def marks_before_pauses(bench: Bench) -> Measured:
    """The load of two senders grows step by step, from 90 % of the line, until they are paused."""
    priority, port = bench.lossless[0], bench.port_of(bench.receiver)
    curve_of(bench, priority)
    buffer_bits = 8 * bench.spec.switch(bench.switch).buffer_bytes
    step_ns = max(20_000, round(buffer_bits * 1e9 / (_STEP * _STEPS**2 / 2 * bench.line_bps)))
    streams = _two_senders(bench, priority, share=_FIRST / 2)
    for step in range(1, _STEPS):
        more = _two_senders(bench, priority, share=_STEP / 2, name=f"step{step}-")
        streams += [replace(stream, delay_ns=step * step_ns) for stream in more]
    first: dict[str, int] = {}
    with bench.trial(streams, for_ns=step_ns * _STEPS) as trial:
        until_ns = START_NS + step_ns * _STEPS
        while trial.now_ns < until_ns and "pause" not in first:
            trial.run_until(trial.now_ns + step_ns // 20)
            if trial.count(port, "ecn_marked", priority):
                first.setdefault("CE", trial.now_ns)
            if _pauses_to(trial, bench, priority):
                first.setdefault("pause", trial.now_ns)
        lost = nothing_lost(trial, (priority,))
    marked, paused = first.get("CE"), first.get("pause")
    in_order = marked is not None and (paused is None or marked < paused)

    def at(time_ns: int | None) -> str:
        if time_ns is None:
            return "never"
        load = _FIRST + _STEP * ((time_ns - START_NS) // step_ns)
        return f"at {load:.0%} of the line"

    return all_hold((in_order, f"first CE {at(marked)}, first pause {at(paused)}"), lost)


def no_marks_below_kmin(bench: Bench) -> Measured:
    """A paused queue grows to just below kmin."""
    priority = bench.lossless[0]
    kmin = _kmin(bench, priority)
    packets = max(1, kmin // STORED - 1)
    marks, pauses = _filled(bench, priority, packets)
    return all_hold(
        (marks == 0, f"{marks} of {packets} packets marked, up to {packets * STORED} B"),
        (pauses == 0, f"{pauses} pauses"),
    )


def marks_follow_curve(bench: Bench) -> Measured:
    """A paused queue grows to kmax; marks are counted."""
    priority = bench.lossless[0]
    kmin, kmax, pmax = _kmin(bench, priority), _kmax(bench, priority), _pmax(bench, priority)
    packets = kmax // STORED
    chances = [
        pmax * min(1.0, max(0.0, (n * STORED - kmin) / max(1, kmax - kmin))) for n in range(packets)
    ]
    expected = _SEEDS * sum(chances)
    allowed = _DEVIATIONS * sqrt(_SEEDS * sum(p * (1 - p) for p in chances)) + 1
    runs = [_filled(bench, priority, packets, seed) for seed in range(1, _SEEDS + 1)]
    marks, pauses = map(sum, zip(*runs, strict=True))
    return all_hold(
        (
            abs(marks - expected) <= allowed,
            f"{marks} of {_SEEDS * packets} packets marked, {expected:.1f} expected, "
            f"+-{allowed:.1f}",
        ),
        (pauses == 0, f"{pauses} pauses before kmax"),
    )


def all_marked_above_kmax(bench: Bench) -> Measured:
    """A paused queue grows beyond kmax: every further packet is marked."""
    priority = bench.lossless[0]
    kmax = _kmax(bench, priority)
    filled, more = kmax // STORED + 2, 50
    below, _ = _filled(bench, priority, filled)
    marks, pauses = _filled(bench, priority, filled + more)
    return all_hold(
        (marks - below == more, f"{marks - below} of {more} packets above kmax marked"),
        (pauses == 0, f"{pauses} pauses before that depth"),
    )


def marks_per_queue(bench: Bench) -> Measured:
    """The queue of one priority is beyond kmax while the others run on at an eighth of the line."""
    priority, port = bench.lossless[0], bench.port_of(bench.receiver)
    kmax = _kmax(bench, priority)
    streams, window = bench.streams(bench.priorities), bench.window_ns()
    for_ns = max(window, round(1.2 * kmax / streams[0].payload / streams[0].packets_per_ns))
    storm = Storm(bench.receiver, (priority,), 0, START_NS + 2 * for_ns)
    with bench.trial(streams, for_ns=for_ns, storms=[storm]) as trial:
        trial.run_until(START_NS + for_ns)
        marks = trial.counters(port)["ecn_marked"]
    others = sum(marks) - marks[priority]
    return all_hold(
        (marks[priority] > 0, f"{marks[priority]} packets of {priority} marked"),
        (others == 0, f"{others} of all others"),
    )


def oversubscribed_lossy(bench: Bench) -> Measured:
    """Two senders fill a lossy queue: it drops, and pauses nobody."""
    priority, port = bench.lossy()[0], bench.port_of(bench.receiver)
    streams = _two_senders(bench, priority, share=1.0)
    for_ns = _time_to_fill(bench)
    with bench.trial(streams, for_ns=for_ns) as trial:
        trial.run_until(START_NS + for_ns)
        pauses, drops = _pauses_to(trial, bench, priority), trial.dropped(priority)
        counted = trial.count(port, "tx_queue_discard", priority)
        counted += trial.total("rx_buf_discard", priority)
    return all_hold(
        (pauses == 0, f"TxPfc[{priority}] {pauses}"),
        (drops > 0, f"{drops} packets dropped"),
        (counted == drops, f"{counted} of them counted by the switch"),
    )


def curve_of(bench: Bench, priority: int) -> Curve:
    """The curve of a priority's queue at the receiver's port. Raises NotApplicable."""
    settings = bench.settings_at(bench.receiver)
    curve = settings.ecn and settings.ecn.curve(settings.classes.queue_of(priority))
    if not curve:
        raise NotApplicable(
            f"{bench.port_of(bench.receiver)} does not mark packets of priority {priority}; give "
            "it switches.ecn"
        )
    return curve


def _kmin(bench: Bench, priority: int) -> int:
    return bench.required.kmin or curve_of(bench, priority).kmin_bytes


def _kmax(bench: Bench, priority: int) -> int:
    return bench.required.kmax or curve_of(bench, priority).kmax_bytes


def _pmax(bench: Bench, priority: int) -> float:
    own = curve_of(bench, priority).pmax
    return own if bench.required.pmax is None else bench.required.pmax


def _filled(bench: Bench, priority: int, packets: int, seed: int = 1) -> tuple[int, int]:
    """Marks, and pauses sent, when so many packets have joined the queue, which is paused."""
    port = bench.port_of(bench.receiver)
    (stream,) = bench.streams((priority,), payload=_PAYLOAD, share=0.5)
    for_ns = round(packets / stream.packets_per_ns)
    end = START_NS + 2 * for_ns
    storm = Storm(bench.receiver, (priority,), 0, end + 2 * for_ns)
    with bench.trial([stream], for_ns=for_ns, storms=[storm], seed=seed) as trial:
        trial.run_until(end)
        paused = _pauses_to(trial, bench, priority)
        # Where packets are marked when they leave, they must leave.
        trial.run_until(end + 2 * for_ns + round(3 * packets / stream.packets_per_ns))
        return trial.count(port, "ecn_marked", priority), paused


def _two_senders(bench: Bench, priority: int, *, share: float, name: str = "") -> list[Stream]:
    return flat(
        bench.streams((priority,), share=share, source=source, name=f"{name}{source}-p")
        for source in bench.senders[:2]
    )


def _time_to_fill(bench: Bench) -> int:
    """In which two senders at the line's rate fill twice the buffer, in ns."""
    buffer_bits = 8 * bench.spec.switch(bench.switch).buffer_bytes
    return round(2 * buffer_bits * 1e9 / bench.line_bps)


def _pauses_to(trial: Trial, bench: Bench, priority: int) -> int:
    """Pauses of a priority that switches' ports to senders have sent."""
    return sum(trial.count(bench.port_of(host), "tx_pause", priority) for host in bench.senders[:2])
