"""A second implementation of NVIDIA's reaction point, event by event from the help texts of its
parameters.

It shares nothing with the C core, not even its shortcuts: every timer fires.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RoceCcEcn:
    """Parameters with the defaults of a ConnectX-6 Dx: rates in bits/s, times in picoseconds,
    fractions of 1."""

    clamp_tgt_rate: bool = False
    clamp_tgt_rate_after_time_inc: bool = True
    rpg_time_reset: int = 300_000_000
    rpg_byte_reset: int = 32767
    rpg_threshold: int = 1
    rpg_max_rate: float = 0
    rpg_ai_rate: float = 5e6
    rpg_hai_rate: float = 50e6
    rpg_min_rate: float = 1e6
    rpg_gd: int = 11
    rpg_min_dec_fac: float = 0.5
    rate_to_set_on_first_cnp: float = 0
    dce_tcp_g: float = 1019 / 1024
    dce_tcp_rtt: int = 1_000_000
    rate_reduce_monitor_period: int = 4_000_000
    initial_alpha_value: float = 1023 / 1024


@dataclass
class NvidiaReactionPoint:
    """The rate limiter of one sender. `state` is (Rc, Rt), or (0, 0) without a limit."""

    p: RoceCcEcn
    line_rate: float
    state: tuple[float, float] = (0, 0)
    alpha: float = 0
    notified: bool = False
    bytes: int = 0
    stages: dict[str, int] = field(default_factory=lambda: {"bytes": 0, "timer": 0})
    last_increase: str = ""
    due: dict[str, int] = field(default_factory=dict)

    @property
    def ceiling(self) -> float:
        return min(self.p.rpg_max_rate or self.line_rate, self.line_rate)

    def cnp(self, now: int) -> None:
        self.run_until(now)
        if not self.state[0]:
            first = self.p.rate_to_set_on_first_cnp or self.ceiling
            self.alpha, self.notified = self.p.initial_alpha_value, False
            self.due["alpha"] = now + self.p.dce_tcp_rtt
            self._start_again(now)
            self.due.setdefault("reduce", now + self.p.rate_reduce_monitor_period)
            self._set(first, first)
        self.due.setdefault("reduce", now + self.p.rate_reduce_monitor_period)
        self.notified = True

    def sent(self, now: int, size: int) -> None:
        self.run_until(now)
        if not self.state[0] or not self.p.rpg_byte_reset:
            return
        self.bytes += size
        if self.bytes >= self.p.rpg_byte_reset:
            self.bytes -= self.p.rpg_byte_reset
            self._increase("bytes")

    def run_until(self, now: int) -> None:
        """Fires all timers that are due by then; at equal times alpha comes first."""
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
                self.due["timer"] = at + self.p.rpg_time_reset
                self._increase("timer")

    def _reduce(self, now: int) -> None:
        counts = {
            "": False,
            "bytes": True,
            "timer": self.p.clamp_tgt_rate_after_time_inc,
        }[self.last_increase]
        current, target = self.state
        if counts or self.p.clamp_tgt_rate:
            target = current
        factor = max(1 - self.alpha * 2**10 / 2**self.p.rpg_gd, self.p.rpg_min_dec_fac)
        self._start_again(now)
        self._set(current * factor, target)

    def _start_again(self, now: int) -> None:
        self.bytes = 0
        self.stages = {"bytes": 0, "timer": 0}
        self.last_increase = ""
        self.due["timer"] = now + self.p.rpg_time_reset

    def _increase(self, cause: str) -> None:
        stages = [self.stages["timer"]]
        if self.p.rpg_byte_reset:
            stages.append(self.stages["bytes"])
        current, target = self.state
        if min(stages) > self.p.rpg_threshold:
            target += self.p.rpg_hai_rate
        elif max(stages) >= self.p.rpg_threshold:
            target += self.p.rpg_ai_rate
        target = min(target, self.ceiling)
        self.stages[cause] += 1
        self.last_increase = cause
        self._set((current + target) / 2, target)

    def _set(self, current: float, target: float) -> None:
        low, high = self.p.rpg_min_rate, self.ceiling
        current, target = max(low, min(current, high)), max(low, min(target, high))
        self.state = (current, target)
        if high - current < 1 and "reduce" not in self.due:
            self.state = (0, 0)
            self.due = {}
