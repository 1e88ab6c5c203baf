"""The line on stderr while a search goes on.

incast  40 %  20 of 50 trials  6 pruned  1 failed  best 372 us
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from emu.report.progress import StatusLine
from emu.report.run_figures import written
from emu.tuning.goals import Goal
from emu.tuning.trials import FAILED, PRUNED, VIOLATED, Trial, winner


class TuneLine(StatusLine):
    """The line of a search."""

    def __init__(self, name: str, total: int, goals: Sequence[Goal], stream: TextIO | None) -> None:
        """`total`: trials that are wanted."""
        super().__init__(stream)
        self._name, self._total, self._goals = name, total, goals
        self._trials: Sequence[Trial] = ()

    def add(self, trials: Sequence[Trial]) -> None:
        """A trial has ended. `trials`: all that have."""
        self._trials = trials
        self.show(self._line)

    def _line(self) -> str:
        done = len(self._trials)
        parts = [self._name, f"{done / self._total:.0%}", f"{done:,} of {self._total:,} trials"]
        for how, words in _WORDS.items():
            count = sum(own.how == how for own in self._trials)
            parts += [f"{count:,} {words}"] if count else []
        best = winner(self._trials, self._goals)
        if best is not None:
            means = zip(best.means, self._goals, strict=True)
            shown = [f"{goal.name} {written(mean, goal.figure.unit)}" for mean, goal in means]
            parts.append(f"best: {', '.join(shown)}")
        return "  ".join(parts)


_WORDS = {PRUNED: "pruned", VIOLATED: "violate a constraint", FAILED: "failed"}
