"""A second implementation of DCTCP's sender, from RFC 8257, 3.3. It counts marks and packets per
window, and identifies packets by their place in the stream."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parameters:
    """Parameters; windows in packets."""

    g: float = 1 / 16
    initial_cwnd: float = 10
    max_cwnd: float = 512


@dataclass
class Sender:
    """The congestion window of one sender. `acked` and `sent` count packets since the beginning."""

    p: Parameters
    cwnd: float = field(init=False)
    alpha: float = 1
    acked: int = 0
    window_end: int = 0
    cut_end: int = 0
    seen: list[bool] = field(default_factory=list)
    """For each packet acknowledged in this window, whether its ACK carried BECN."""
    congested: bool = False

    def __post_init__(self) -> None:
        self.cwnd = self.p.initial_cwnd

    @property
    def state(self) -> tuple[float, ...]:
        return (self.cwnd, self.alpha)

    def ack(self, now: int, packets: int, in_flight: int, marked: bool, rtt: int) -> None:
        full = in_flight >= int(self.cwnd)
        sent = self.acked + in_flight
        self.acked += packets
        self.seen += [marked] * packets
        if self.acked >= self.window_end:
            share = sum(self.seen) / len(self.seen)
            self.alpha = (1 - self.p.g) * self.alpha + self.p.g * share
            self.seen, self.window_end = [], sent
        if marked:
            self.congested = True
            self._cut(1 - self.alpha / 2, sent)
        elif full and self.acked >= self.cut_end:
            self._set(self.cwnd + packets / (self.cwnd if self.congested else 1))

    def lost(self, now: int) -> None:
        self.congested = True
        self._cut(0.5, self.acked + int(self.cwnd))

    def _cut(self, factor: float, end: int) -> None:
        if self.acked >= self.cut_end:
            self.cut_end = end
            self._set(self.cwnd * factor)

    def _set(self, cwnd: float) -> None:
        self.cwnd = min(max(cwnd, 1), self.p.max_cwnd)
