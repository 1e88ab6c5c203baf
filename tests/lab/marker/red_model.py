"""A model of the kernel's RED after include/net/red.h and sch_red.c: average, count and mark."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass
class RedQueue:
    """A RED queue that marks. `w` is the weight of the newest depth in the average."""

    min_bytes: int
    max_bytes: int
    probability: float
    w: float
    random: Random
    average: float = 0
    count: int = -1
    """Packets since the last mark, or -1 below min."""
    draw: float = 0

    def marks(self, depth_bytes: int) -> bool:
        """Whether RED marks a packet that arrives at this queue depth."""
        self.average += self.w * (depth_bytes - self.average)
        if self.average < self.min_bytes:
            self.count = -1
            return False
        if self.average >= self.max_bytes:
            self.count = -1
            return True
        self.count += 1
        if self.count == 0:
            self.draw = self.random.random()
            return False
        share = (self.average - self.min_bytes) / (self.max_bytes - self.min_bytes)
        if self.count * share * self.probability < self.draw:
            return False
        self.count, self.draw = 0, self.random.random()
        return True
