"""Max-min fair rates in plain Python, as textbooks have them: progressive filling.

The rates of all streams rise together. Streams that cross a full link stop; the others go on. What
streams cause in the other direction comes first: they share what it leaves.
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


def short(number: Fraction) -> Fraction:
    """Almost the same number with fewer digits, since those of fractions grow without end."""
    return number.limit_denominator(10**18)


def rates_beside_reverse(
    capacity: Sequence[Fraction], routes: Sequence[Route], reverse: Sequence[Route]
) -> list[Fraction]:
    """The same, when each byte of a stream on a route also sends `reverse` bytes over links.

    The rates decide what that takes, and it decides the rates, so both are worked out in turns.
    """
    taken = [Fraction(0)] * len(capacity)
    while True:
        left = [own - by for own, by in zip(capacity, taken, strict=True)]
        rates = max_min_rates(left, routes)
        before, taken = taken, [Fraction(0)] * len(capacity)
        for rate, links in zip(rates, reverse, strict=True):
            for link, share in links.items():
                taken[link] += rate * share
        taken = [short(own) for own in taken]
        changes = zip(capacity, before, taken, strict=True)
        if all(abs(new - old) < own / 10**14 for own, old, new in changes):
            return rates
