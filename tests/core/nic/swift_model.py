"""A second implementation of Swift's sender, from the paper's algorithm 1 and its equation of flow
scaling."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parameters:
    """Parameters; times in picoseconds, windows in packets."""

    base_target: float = 20e6
    fs_range: float = 100e6
    fs_min_cwnd: float = 0.1
    fs_max_cwnd: float = 100
    ai: float = 1
    beta: float = 0.8
    max_mdf: float = 0.5
    min_cwnd: float = 0.01
    initial_cwnd: float = 10
    max_cwnd: float = 512


@dataclass
class Sender:
    """The congestion window of one sender. `rtt` is 0 when no round trip was measured."""

    p: Parameters
    cwnd: float = field(init=False)
    last_rtt: int = 0
    last_decrease: int = 0

    def __post_init__(self) -> None:
        self.cwnd = self.p.initial_cwnd

    @property
    def state(self) -> tuple[float, ...]:
        return (self.cwnd,)

    @property
    def target(self) -> float:
        low, high = self.p.fs_max_cwnd**-0.5, self.p.fs_min_cwnd**-0.5
        share: float = (self.cwnd**-0.5 - low) / (high - low)
        return self.p.base_target + self.p.fs_range * min(max(share, 0), 1)

    def ack(self, now: int, packets: int, in_flight: int, marked: bool, rtt: int) -> None:
        if not rtt:
            return
        self.last_rtt = rtt
        if rtt >= self.target:
            self._decrease(now, self.p.beta * (rtt - self.target) / rtt)
        elif in_flight >= max(1, int(self.cwnd)):
            self._set(self.cwnd + self.p.ai * packets / max(self.cwnd, 1))

    def lost(self, now: int) -> None:
        self._decrease(now, 1)

    def _decrease(self, now: int, share: float) -> None:
        if now - self.last_decrease >= self.last_rtt:
            self.last_decrease = now
            self._set(self.cwnd * (1 - min(share, self.p.max_mdf)))

    def _set(self, cwnd: float) -> None:
        self.cwnd = min(max(cwnd, self.p.min_cwnd), self.p.max_cwnd)
