"""Comparisons of numbers that need not be exact: within a tolerance, or likely by chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Within:
    """`assert run.counter("h1", "np_cnp_sent") == within(40, rel=0.1)`; prints the range."""

    expected: float
    allowed: float

    def __eq__(self, measured: object) -> bool:
        if not isinstance(measured, int | float | np.number):
            return NotImplemented
        return bool(abs(measured - self.expected) <= self.allowed)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        low, high = self.expected - self.allowed, self.expected + self.allowed
        return f"{self.expected:g} within {self.allowed:g} ({low:g} to {high:g})"


def within(expected: float, *, rel: float = 0.0, by: float = 0.0) -> Within:
    """Equal to any number that differs from the expected one by at most `rel` times it, or `by`.

    The larger of the two applies. Raises ValueError if no number, or every number, were equal.
    """
    allowed = max(rel * abs(expected), by)
    if not (math.isfinite(expected) and math.isfinite(allowed)) or min(rel, by) < 0:
        raise ValueError(f"within({expected:g}, rel={rel:g}, by={by:g}) allows no number, or all")
    return Within(expected, allowed)


@dataclass(frozen=True)
class Binomial:
    """`assert binomial(marked, sent, 0.2)`: true if chance makes such a number likely."""

    hits: int
    trials: int
    p: float
    alpha: float
    chance: float
    """The probability of a number at least as far from the mean as this one."""

    def __bool__(self) -> bool:
        return self.chance >= self.alpha

    def __repr__(self) -> str:
        verdict = "likely" if self else "unlikely"
        return (
            f"{verdict}: {self.hits} of {self.trials}, where {self.trials * self.p:g} are expected"
            f" at p = {self.p:g}; chance {self.chance:.3g}, alpha {self.alpha:g}"
        )


def binomial(hits: int, trials: int, p: float, *, alpha: float = 1e-3) -> Binomial:
    """Whether this number of hits is likely if each trial hits with probability p: for example
    packets marked, of those sent.

    The exact two-sided test: twice the smaller tail. A correct emulator fails it about once in
    1 / alpha seeds. Raises ValueError for impossible numbers.
    """
    if not (0 <= hits <= trials and 0 <= p <= 1 and 0 < alpha < 1):
        raise ValueError(
            f"binomial({hits}, {trials}, {p:g}, alpha={alpha:g}): there is no such case"
        )
    low, high = _tail(hits, trials, p), _tail(trials - hits, trials, 1 - p)
    return Binomial(hits, trials, p, alpha, min(1.0, 2 * min(low, high)))


def _tail(hits: int, trials: int, p: float) -> float:
    """The probability of this number of hits or fewer."""
    if p in (0.0, 1.0):
        return float(p == 0.0 or hits == trials)
    logs = np.fromiter((_log_probability(k, trials, p) for k in range(hits + 1)), np.float64)
    return min(1.0, math.fsum(np.exp(logs)))


def _log_probability(hits: int, trials: int, p: float) -> float:
    ways = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    return ways + hits * math.log(p) + (trials - hits) * math.log1p(-p)
