"""Max-min fair rates in plain Python, as textbooks have them: progressive filling.

The rates of all streams rise together. Streams that cross a full link stop; the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

Route = Mapping[int, Fraction]
"""Link -> the share of the route's bytes that crosses it."""


def max_min_rates(capacity: Sequence[Fraction], routes: Sequence[Route]) -> list[Fraction]:
    """The rate of one stream on each route."""
    rate = [Fraction(0)] * len(routes)
    left = list(capacity)
    rising = set(range(len(routes)))
    while rising:
        asked = [Fraction(0)] * len(capacity)
        for route in rising:
            for link, share in routes[route].items():
                asked[link] += share
        step = min(left[link] / asked[link] for link in range(len(left)) if asked[link])
        for route in rising:
            rate[route] += step
        left = [own - step * by for own, by in zip(left, asked, strict=True)]
        full = {link for link, own in enumerate(left) if own == 0 and asked[link]}
        rising = {route for route in rising if not full & routes[route].keys()}
    return rate
