"""A second implementation of DCQCN's reaction point, written event by event from the paper's
rules.

It shares nothing with the C core, not even its shortcuts: every timer fires.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parameters:
    """Parameters under the paper's names; rates in bits/s, times in picoseconds."""

    g: float = 1 / 256
    rai: float = 40e6
    rhai: float = 200e6
    min_rate: float = 100e6
    byte_counter: int = 10_000_000
    fast_recovery: int = 5
    alpha_timer: int = 55_000_000
    increase_timer: int = 55_000_000


@dataclass
class ReactionPoint:
    """The rate limiter of one sender. `state` is (Rc, Rt), or (0, 0) without a limit."""

    p: Parameters
    line_rate: float
    state: tuple[float, float] = (0, 0)
    alpha: float = 1
    bytes: int = 0
    stages: dict[str, int] = field(default_factory=lambda: {"bytes": 0, "timer": 0})
    due: dict[str, int] = field(default_factory=dict)

    def cnp(self, now: int) -> None:
        self.run_until(now)
        current = self.state[0] or self.line_rate
        self._set(current * (1 - self.alpha / 2), current)
        self.alpha = (1 - self.p.g) * self.alpha + self.p.g
        self.bytes = 0
        self.stages = {"bytes": 0, "timer": 0}
        self.due["alpha"] = now + self.p.alpha_timer
        if self.state[0]:
            self.due["timer"] = now + self.p.increase_timer

    def sent(self, now: int, size: int) -> None:
        self.run_until(now)
        if not self.state[0]:
            return
        self.bytes += size
        if self.bytes >= self.p.byte_counter:
            self.bytes -= self.p.byte_counter
            self._increase("bytes")

    def run_until(self, now: int) -> None:
        while self.due and min(self.due.values()) <= now:
            name = min(self.due, key=lambda timer: self.due[timer])
            if name == "alpha":
                self.alpha *= 1 - self.p.g
                self.due["alpha"] += self.p.alpha_timer
            else:
                self.due["timer"] += self.p.increase_timer
                self._increase("timer")

    def _increase(self, cause: str) -> None:
        self.stages[cause] += 1
        stages = self.stages.values()
        current, target = self.state
        if max(stages) >= self.p.fast_recovery:
            target += self.p.rai
        if min(stages) > self.p.fast_recovery:
            target += (min(stages) - self.p.fast_recovery) * self.p.rhai - self.p.rai
        target = min(target, self.line_rate)
        self._set((current + target) / 2, target)

    def _set(self, current: float, target: float) -> None:
        low, high = self.p.min_rate, self.line_rate
        current, target = max(low, min(current, high)), max(low, min(target, high))
        self.state = (current, target)
        if high - current < 1:
            self.state = (0, 0)
            self.due.pop("timer", None)
