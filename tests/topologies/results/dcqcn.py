"""A second implementation of DCQCN, from its paper and in Python, for comparison with the
emulator's queue.

    fixed_point   the fluid model's only fixed point (Zhu et al., "ECN or Delay", CoNEXT'16)
    mean_queue    N senders packet by packet into one queue that marks as packets leave

Times in us, sizes in bytes, rates in bytes per us. Parameters are those of DCQCN's paper
(SIGCOMM'15) at 40 Gb/s.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random

CAPACITY, R_AI, R_MIN = 5000.0, 5.0, 1.25
INTERVAL, ALPHA_TIMER, TIMER, BYTE_COUNTER, F, G = 50.0, 55.0, 55.0, 10e6, 5, 1 / 256
WIRE, FEEDBACK = 1106, 2.0
"""Bytes of a packet with 1024 of payload on the wire, and the delay of feedback between switch and
NIC."""


@dataclass(frozen=True)
class Line:
    """The WRED curve."""

    kmin: float = 5e3
    kmax: float = 200e3
    pmax: float = 0.01

    def marks(self, queue: float, random: Random) -> bool:
        p = self.pmax * (queue - self.kmin) / (self.kmax - self.kmin)
        return queue >= self.kmax or random.random() < p


def fixed_point(flows: int, line: Line, packet: int = 1000) -> float:
    """Depth of the queue at which marks and increases balance, by bisection for p."""
    rate, b = CAPACITY / packet / flows, BYTE_COUNTER / packet

    def balance(p: float) -> float:
        def at_least_one(packets: float) -> float:
            return float(1 - (1 - p) ** packets)

        def events(packets: float) -> float:
            return float(p / ((1 - p) ** -packets - 1))

        a, alpha = at_least_one(INTERVAL * rate), at_least_one(ALPHA_TIMER * rate)
        by_bytes, by_time = events(b), events(TIMER * rate)
        late = by_bytes * (1 - p) ** (F * b) + by_time * (1 - p) ** (F * TIMER * rate)
        rises: float = a * a * alpha / ((by_bytes + by_time) * late)
        return rises - INTERVAL**2 * R_AI / packet * rate

    low, high = 1e-6, 0.5
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if balance(middle) < 0 else (low, middle)
    return line.kmin + low / line.pmax * (line.kmax - line.kmin)


class Sender:
    """The reaction point of one flow, and the notification point at its receiver."""

    def __init__(self) -> None:
        self.current = self.target = CAPACITY
        self.alpha, self.limited = 1.0, False
        self.sent, self.by_bytes, self.by_time, self.cuts = 0.0, 0, 0, 0
        self.next_cnp, self.cnp_pending = 0.0, False

    def cut(self) -> None:
        self.limited, self.target = True, self.current
        self.current = max(R_MIN, self.current * (1 - self.alpha / 2))
        self.alpha = (1 - G) * self.alpha + G
        self.sent, self.by_bytes, self.by_time, self.cuts = 0.0, 0, 0, self.cuts + 1

    def increase(self) -> None:
        if max(self.by_bytes, self.by_time) >= F:
            self.target = min(CAPACITY, self.target + R_AI)
        self.current = (self.current + self.target) / 2

    def count_bytes(self) -> None:
        self.sent += WIRE * self.limited
        if self.sent >= BYTE_COUNTER:
            self.sent, self.by_bytes = 0.0, self.by_bytes + 1
            self.increase()


class Incast:
    """All senders, their queue, and the schedule of events."""

    def __init__(self, flows: int, line: Line, seed: int) -> None:
        self.senders = [Sender() for _ in range(flows)]
        self.line, self.random = line, Random(seed)
        self.now, self.queue = 0.0, deque[Sender]()
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()
        for sender in self.senders:
            self.at(self.random.random(), partial(self.send, sender))

    def at(self, time: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (time, next(self.order), what))

    def send(self, sender: Sender) -> None:
        self.queue.append(sender)
        if len(self.queue) == 1:
            self.at(self.now + WIRE / CAPACITY, self.depart)
        sender.count_bytes()
        self.at(self.now + WIRE / sender.current, lambda: self.send(sender))

    def depart(self) -> None:
        sender = self.queue.popleft()
        if self.queue:
            self.at(self.now + WIRE / CAPACITY, self.depart)
        if self.line.marks(len(self.queue) * WIRE, self.random):
            self.at(self.now + FEEDBACK, lambda: self.marked(sender))

    def marked(self, sender: Sender) -> None:
        """Sends a CNP at once, or one at the end of the interval."""
        if not sender.cnp_pending:
            sender.cnp_pending, at = True, max(self.now, sender.next_cnp)
            sender.next_cnp = at + INTERVAL
            self.at(at, lambda: self.notify(sender))

    def notify(self, sender: Sender) -> None:
        sender.cnp_pending = False
        self.at(self.now + FEEDBACK, lambda: self.cut(sender))

    def cut(self, sender: Sender) -> None:
        sender.cut()
        self.at(self.now + TIMER, partial(self.tick, sender, sender.cuts))
        self.at(self.now + ALPHA_TIMER, partial(self.fade, sender, sender.cuts))

    def tick(self, sender: Sender, cuts: int) -> None:
        if sender.cuts == cuts:
            sender.by_time += 1
            sender.increase()
            self.at(self.now + TIMER, lambda: self.tick(sender, cuts))

    def fade(self, sender: Sender, cuts: int) -> None:
        if sender.cuts == cuts:
            sender.alpha *= 1 - G
            self.at(self.now + ALPHA_TIMER, lambda: self.fade(sender, cuts))


def mean_queue(flows: int, line: Line, *, start: float, end: float, seed: int = 1) -> float:
    """Mean depth of the queue from `start` to `end`."""
    incast, area = Incast(flows, line, seed), 0.0
    while incast.now < end:
        time, _, what = heapq.heappop(incast.agenda)
        area += (time - incast.now) * len(incast.queue) * WIRE if time > start else 0
        incast.now = time
        what()
    return area / (end - start)
