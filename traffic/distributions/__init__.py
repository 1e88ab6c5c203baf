"""Distributions of message sizes, as measured in data centres.

Each is a text file beside this one. It begins with its source and has a line for each point of the
cumulative distribution: bytes, and the per cent of messages that are no larger. Between two points
all sizes are equally likely:

    100 % ┤            ╭────       a message gets the size that the curve
          │       ╭────╯           has at a random per cent
     60 % ┤────╱╯
          │ ╱  ╎
      0 % ┼────┴────────────
          0    1 MB      bytes

Most messages are small, and most bytes are in large ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from random import Random

NAMES = ("websearch", "hadoop", "storage")


@dataclass(frozen=True)
class Distribution:
    """Sizes in bytes, rising, and the share of messages (0 to 1) that are no larger."""

    sizes: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def mean_bytes(self) -> float:
        """Expected size of a message."""
        return sum(
            (upper_share - lower_share) * (lower + upper) / 2
            for (lower, lower_share), (upper, upper_share) in pairwise(
                zip(self.sizes, self.shares, strict=True)
            )
        )

    def quantile(self, share: float) -> float:
        """The size that this share of the messages, in [0, 1), does not exceed."""
        upper = bisect_right(self.shares, share)
        low, high = self.shares[upper - 1], self.shares[upper]
        smaller, larger = self.sizes[upper - 1], self.sizes[upper]
        return smaller + (larger - smaller) * (share - low) / (high - low)

    def draw(self, random: Random) -> int:
        """Bytes of a message, one at least."""
        return max(1, round(self.quantile(random.random())))


@cache
def distribution(name: str) -> Distribution:
    """One of `NAMES`."""
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    points = [(size, percent / 100) for size, percent in _points(text.splitlines())]
    sizes, shares = zip(*points, strict=True)
    return Distribution(sizes, shares)


def _points(lines: Iterable[str]) -> Iterator[tuple[float, float]]:
    for line in lines:
        if not line.startswith("#"):
            size, percent = map(float, line.split())
            yield size, percent
