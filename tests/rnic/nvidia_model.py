"""NVIDIA's reaction point a second time, from the help texts of its parameters, event by event.

It shares nothing with the C core, not even its shortcuts: every timer fires.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RoceCcEcn:
    """Rates in bits/s, times in picoseconds, fractions of 1; the defaults of a ConnectX-6 Dx."""

    line_rate: float = 100e9
    clamp_tgt_rate: bool = False
    clamp_tgt_rate_after_time_inc: bool = True
    time_reset: int = 300_000_000
    byte_reset: int = 32767
    threshold: int = 1
    max_rate: float = 0
    ai_rate: float = 5e6
    hai_rate: float = 50e6
    min_rate: float = 1e6
    gd: int = 11
    min_dec_fac: float = 0.5
    rate_to_set_on_first_cnp: float = 0
    dce_tcp_g: float = 1019 / 1024
    dce_tcp_rtt: int = 1_000_000
    monitor_period: int = 4_000_000
    initial_alpha: float = 1023 / 1024

    @property
    def ceiling(self) -> float:
        return min(self.max_rate or self.line_rate, self.line_rate)


@dataclass
class NvidiaReactionPoint:
    """The limiter of one sender. `rates` is (Rc, Rt), or (0, 0) while nothing is limited."""

    p: RoceCcEcn
    rates: tuple[float, float] = (0, 0)
    alpha: float = 0
    notified: bool = False
    bytes: int = 0
    stages: dict[str, int] = field(default_factory=lambda: {"bytes": 0, "timer": 0})
    last_increase: str = ""
    due: dict[str, int] = field(default_factory=dict)

    def cnp(self, now: int) -> None:
        self.run_until(now)
        if not self.rates[0]:
            first = self.p.rate_to_set_on_first_cnp or self.p.ceiling
            self.alpha, self.notified = self.p.initial_alpha, False
            self.due["alpha"] = now + self.p.dce_tcp_rtt
            self._start_again(now)
            self.due.setdefault("reduce", now + self.p.monitor_period)
            self._set(first, first)
        self.due.setdefault("reduce", now + self.p.monitor_period)
        self.notified = True

    def sent(self, now: int, size: int) -> None:
        self.run_until(now)
        if not self.rates[0] or not self.p.byte_reset:
            return
        self.bytes += size
        if self.bytes >= self.p.byte_reset:
            self.bytes -= self.p.byte_reset
            self._increase("bytes")

    def run_until(self, now: int) -> None:
        """Of what is due at the same time alpha comes first."""
        while self.due and min(self.due.values()) <= now:
            name = min(self.due, key=lambda timer: (self.due[timer], timer))
            at = self.due.pop(name)
            if name == "alpha":
                keep = self.p.dce_tcp_g
                self.alpha = keep * self.alpha + (1 - keep if self.notified else 0)
                self.notified = False
                self.due["alpha"] = at + self.p.dce_tcp_rtt
            elif name == "reduce":
                self._reduce(at)
            else:
                self.due["timer"] = at + self.p.time_reset
                self._increase("timer")

    def _reduce(self, now: int) -> None:
        counts = {
            "": False,
            "bytes": True,
            "timer": self.p.clamp_tgt_rate_after_time_inc,
        }[self.last_increase]
        current, target = self.rates
        if counts or self.p.clamp_tgt_rate:
            target = current
        factor = max(1 - self.alpha * 2**10 / 2**self.p.gd, self.p.min_dec_fac)
        self._start_again(now)
        self._set(current * factor, target)

    def _start_again(self, now: int) -> None:
        self.bytes = 0
        self.stages = {"bytes": 0, "timer": 0}
        self.last_increase = ""
        self.due["timer"] = now + self.p.time_reset

    def _increase(self, cause: str) -> None:
        stages = [self.stages["timer"]]
        if self.p.byte_reset:
            stages.append(self.stages["bytes"])
        current, target = self.rates
        if min(stages) > self.p.threshold:
            target += self.p.hai_rate
        elif max(stages) >= self.p.threshold:
            target += self.p.ai_rate
        target = min(target, self.p.ceiling)
        self.stages[cause] += 1
        self.last_increase = cause
        self._set((current + target) / 2, target)

    def _set(self, current: float, target: float) -> None:
        low, high = self.p.min_rate, self.p.ceiling
        current, target = max(low, min(current, high)), max(low, min(target, high))
        self.rates = (current, target)
        if high - current < 1 and "reduce" not in self.due:
            self.rates = (0, 0)
            self.due = {}
