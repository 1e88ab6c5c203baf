"""How much worse a figure is than in other runs, seed by seed.

A difference is shown if the interval of its mean excludes 0 (`emu.measure.bootstrap`), or if the
figure is more than twice as bad with some of the seeds: what happens with few seeds alone has an
interval that contains 0, however bad it is. Either takes FEWEST seeds.

Where only some seeds are hit, the mean of all of them is the figure of no run. Then the mean of
those that are hit counts, and words say how many they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from emu.measure.bootstrap import FEWEST, Interval, interval_of
from emu.sweeps.store import Row
from emu.tuning.goals import Goal
from emu.words import counted

Rows = Mapping[int, Row]
"""Seed -> the row of its run."""


@dataclass(frozen=True)
class Effect:
    """A figure beside its values in other runs."""

    goal: Goal
    shares: Sequence[float]
    """By how much it is worse with each seed, as a share of the other value. Beside 0, as of pauses
    or drops, all that is not 0 counts as 100 % worse."""

    @cached_property
    def share(self) -> Interval | None:
        """The mean of the shares; None: no seed has both values."""
        return interval_of(self.shares) if self.shares else None

    @property
    def mean(self) -> float:
        """The mean of the shares; 0 if there are none."""
        return 0.0 if self.share is None else self.share.mean

    @cached_property
    def in_some(self) -> list[float]:
        """The shares with which the figure is more than twice as bad, if not all seeds are alike.
        They are if the interval excludes 0 and no gap parts them from the others, which are less
        than half as much worse then."""
        if self.share is None or self.share.values < FEWEST:
            return []
        twice = 0.5 if self.goal.maximise else 1.0
        some = [share for share in self.shares if share > twice]
        others = [share for share in self.shares if share <= twice]
        if not some or not others:
            return []
        has_gap = max(others) < min(some) / 2
        return some if has_gap or not self.share.excludes_zero else []

    @property
    def is_shown(self) -> bool:
        return self.share is not None and (self.share.excludes_zero or bool(self.in_some))

    @property
    def shown(self) -> float:
        """By how much it is worse, with the seeds that are hit; 0 if no difference is shown."""
        if self.in_some:
            return sum(self.in_some) / len(self.in_some)
        return self.mean if self.is_shown else 0.0

    @property
    def words(self) -> str:
        """`+12.3 %`, or `+1,551 % with 3 of 5 seeds`."""
        return f"{percent(self.shown)} {self.seeds_in_words}".rstrip()

    @property
    def seeds_in_words(self) -> str:
        """`with 3 of 5 seeds`; empty if all are alike."""
        some = len(self.in_some)
        return f"with {some} of {counted(len(self.shares), 'seed')}" if some else ""


def effect_of(goal: Goal, own: Rows, others: Rows) -> Effect:
    """How much worse a figure of runs is than that of others with the same seeds."""
    seeds = [seed for seed in own if seed in others]
    pairs = [(goal.value(own[seed]), goal.value(others[seed])) for seed in seeds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return Effect(goal, [_share(goal, value, base) for value, base in known])


def _share(goal: Goal, value: float, base: float) -> float:
    if base == 0:
        return float(value != 0)
    return goal.gain(base, value) / base


def percent(share: float) -> str:
    """`+12.3 %`; without decimals from 100 % on."""
    digits = 0 if abs(share) >= 1 else 1
    return f"{100 * share:+,.{digits}f} %"
