"""What cases on the PFC watchdog share. Watchdogs keep the fabric's own times.

A watchdog looks once in each poll, and a storm may begin between two polls. So each time may be two
polls longer than it is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emu.plans.bench import START_NS, Bench, Storm
from emu.plans.case import Measured, all_hold
from emu.plans.storms import Part, flat, nothing_lost
from emu.plans.traffic import Stream
from emu.plans.trial import Trial
from emu.units import PS_PER_NS, format_time_ns

_PACKETS_PER_POLL = 40
_SHORT = 0.7
"""Short pauses, as a part of the detection time."""
_TIMES = 5
_POLLS_ALLOWED = 2
_EARLY = 0.99
"""A watchdog calls a queue paused that was for 99 % of a poll."""


def no_false_detection(bench: Bench) -> Measured:
    """Several pauses, each shorter than the detection time, with traffic between them."""
    clock, priority, port = _Clock(bench), bench.lossless[0], bench.port_of(bench.receiver)
    short = round(clock.detection * _SHORT)
    period = short + clock.detection
    storms = [
        Storm(bench.receiver, (priority,), START_NS + n * period, START_NS + n * period + short)
        for n in range(_TIMES)
    ]
    with bench.trial(
        [clock.stream(priority)], for_ns=_TIMES * period, storms=storms, watchdog={}
    ) as trial:
        trial.run_until(START_NS + (_TIMES + 1) * period)
        detected = trial.count(port, "watchdog_detected", priority)
        pauses = trial.count(port, "rx_pause", priority)
        return all_hold(
            (pauses > 0, f"RxPfc[{priority}] {pauses} in {_TIMES} pauses"),
            (detected == 0, f"{detected} storms reported"),
            nothing_lost(trial, (priority,)),
        )


def storm_is_handled(bench: Bench) -> Measured:
    """Detection, the action that is set, and restoration."""
    with _Storm(bench, {}) as storm:
        action = bench.watchdog().action
        return all_hold(storm.detection(), storm.action(action), storm.restoration())


def storm_is_detected(bench: Bench) -> Measured:
    """Detection alone."""
    with _Storm(bench, {}) as storm:
        return all_hold(storm.detection())


def storm_is_dropped(bench: Bench) -> Measured:
    """The action drop, whatever the fabric's is."""
    with _Storm(bench, {"action": "drop"}) as storm:
        return all_hold(storm.detection(), storm.action("drop"))


def storm_is_forwarded(bench: Bench) -> Measured:
    """The action forward, whatever the fabric's is."""
    with _Storm(bench, {"action": "forward"}) as storm:
        return all_hold(storm.detection(), storm.action("forward"))


def storm_is_restored(bench: Bench) -> Measured:
    """Restoration, and traffic after it."""
    with _Storm(bench, {}) as storm:
        return all_hold(storm.detection(), storm.restoration(), storm.recovery())


def circular_pauses(bench: Bench) -> Measured:
    """Every tester sends to the next one, and all pause their ports."""
    clock, priority = _Clock(bench), bench.lossless[0]
    testers = bench.testers if len(bench.testers) > 1 else [bench.senders[0], bench.receiver]
    storm_ns = clock.longest_detection + 2 * clock.poll
    end = START_NS + storm_ns
    streams = flat(
        [clock.stream(priority, source=source, to=to, name=f"{source}-p")]
        for source, to in zip(testers, [*testers[1:], testers[0]], strict=True)
    )
    after = clock.restoration + (_POLLS_ALLOWED + 2) * clock.poll
    storms = [Storm(host, (priority,), START_NS, end) for host in testers]
    with bench.trial(streams, for_ns=storm_ns + 2 * after, storms=storms, watchdog={}) as trial:
        ports = [bench.port_of(host) for host in testers]
        trial.run_until(START_NS + clock.longest_detection)
        found = sum(trial.count(port, "watchdog_detected", priority) > 0 for port in ports)
        trial.run_until(end + after)
        before = [trial.count(port, "tx_packets", priority) for port in ports]
        trial.run_until(end + 2 * after)
        again = sum(
            trial.count(port, "tx_packets", priority) > sent
            for port, sent in zip(ports, before, strict=True)
        )
    return all_hold(
        (found == len(ports), f"{found} of {len(ports)} stuck ports found in time"),
        (again == len(ports), f"{again} of {len(ports)} send again"),
    )


class _Clock:
    """The times that the watchdog must keep, in ns, and traffic that goes with them."""

    def __init__(self, bench: Bench) -> None:
        own, required = bench.watchdog(), bench.required
        self._bench = bench
        self.detection = (required.detection or own.detection_ps) // PS_PER_NS
        self.restoration = (required.restoration or own.restoration_ps) // PS_PER_NS
        self.poll = own.poll_ps // PS_PER_NS

    @property
    def longest_detection(self) -> int:
        return self.detection + _POLLS_ALLOWED * self.poll

    def stream(self, priority: int, **ends: Any) -> Stream:
        """Some packets in each poll, and little load: storms last for long."""
        (full,) = self._bench.streams((priority,), **ends)
        share = _PACKETS_PER_POLL / (full.packets_per_ns * self.poll)
        (stream,) = self._bench.streams((priority,), share=min(1.0, share) / 8, **ends)
        return stream


class _Storm:
    """A run with one storm, up to the moment at which it is found or should have been."""

    def __init__(self, bench: Bench, watchdog: Mapping[str, Any]) -> None:
        self._clock, self._priority = _Clock(bench), bench.lossless[0]
        self._port = bench.port_of(bench.receiver)
        clock = self._clock
        self._end = START_NS + clock.longest_detection + 4 * clock.poll
        total = self._end - START_NS + clock.restoration + 8 * clock.poll
        self._trial: Trial = bench.trial(
            [clock.stream(self._priority)],
            for_ns=total,
            storms=[Storm(bench.receiver, (self._priority,), 0, self._end)],
            watchdog=watchdog,
        )

    def __enter__(self) -> _Storm:
        self._trial.__enter__()
        self._found = self._trial.wait_for(
            lambda: self._count("watchdog_detected") > 0, self._end, self._clock.poll // 10
        )
        return self

    def __exit__(self, *error: Any) -> None:
        self._trial.__exit__(*error)

    def _count(self, name: str) -> int:
        return self._trial.count(self._port, name, self._priority)

    def detection(self) -> Part:
        """Not earlier than the detection time, and at most two polls later."""
        if self._found is None:
            return False, "no storm was found"
        took = self._found
        holds = _EARLY * self._clock.detection <= took <= self._clock.longest_detection
        return holds, f"found after {format_time_ns(took)}"

    def action(self, action: str) -> Part:
        """What becomes of packets until the storm is over."""
        sent = self._count("tx_packets")
        self._trial.run_until(self._end)
        sent, dropped = self._count("tx_packets") - sent, self._count("watchdog_tx_dropped")
        holds = {
            "drop": dropped > 0 and sent == 0,
            "forward": sent > 0 and dropped == 0,
            "alert": sent == dropped == 0,
        }[action]
        return holds, f"{action}: {dropped} dropped and {sent} sent in the storm"

    def restoration(self) -> Part:
        """After the last pause: at most two polls later than the restoration time."""
        clock = self._clock
        self._trial.run_until(self._end)
        until = self._end + clock.restoration + 6 * clock.poll
        restored = self._trial.wait_for(
            lambda: self._count("watchdog_restored") > 0, until, clock.poll // 10
        )
        if restored is None:
            return False, "the queue was not restored"
        took = restored - self._end
        holds = took >= _EARLY * clock.restoration
        holds &= took <= clock.restoration + _POLLS_ALLOWED * clock.poll
        return holds, f"restored after {format_time_ns(took)}"

    def recovery(self) -> Part:
        """Packets of the priority are sent again."""
        sent = self._count("tx_packets")
        self._trial.run_until(self._trial.now_ns + self._clock.poll)
        more = self._count("tx_packets") - sent
        return more > 0, f"{more} packets in the next poll"
