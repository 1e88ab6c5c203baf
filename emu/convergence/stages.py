"""The stages of an answer to an event, and what it costs, of one run and over repetitions.

    event ─▶ detected ─▶ control plane done ─▶ tables in force ─▶ traffic restored

    detected            a link's carrier; the first session of BGP that is lost or established; the
                        trap of InfiniBand
    control plane done  the last route that FRR told its switch; OpenSM's tables on all switches
    tables in force     the last change of a switch's routes in the run
    traffic restored    the loss-derived time of the flow that lost most: packets lost x interval

All are times since the event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from emu.convergence.events import Event
from emu.convergence.planes import Plane
from emu.convergence.runs import Ended
from emu.measure.bootstrap import Interval, interval_of
from emu.measure.percentile import percentile

P99_FROM = 20
"""Repetitions."""


@dataclass(frozen=True)
class Measured:
    """One repetition."""

    ended: Ended

    @property
    def detected_ns(self) -> int | None:
        """None: the control plane never knows."""
        return self.ended.trial.answer.detected_ns

    @property
    def decided_ns(self) -> int | None:
        return self.ended.trial.answer.decided_ns

    @property
    def in_force_ns(self) -> int | None:
        """None: no switch changes its routes."""
        return self.ended.trial.in_force_ns

    @property
    def is_restored(self) -> bool:
        """Whether losses end before the run: nothing is lost, or someone knows of the failure, and
        no flow lost all from the event on."""
        if not self.ended.lost:
            return True
        pace = self.ended.trial.pace
        offered = (pace.last_ns - pace.event_ns) // pace.interval_ns
        return self.detected_ns is not None and max(self.ended.lost.values()) < offered

    @property
    def restored_ns(self) -> int | None:
        """None: not before the run ended."""
        if not self.is_restored:
            return None
        return max(self.ended.lost.values(), default=0) * self.ended.trial.pace.interval_ns

    @property
    def lost_packets(self) -> int:
        return sum(self.ended.lost.values())

    @property
    def lost_ns(self) -> float:
        """The loss-derived time of all flows together over their number: how long each flow lost
        all, if all had lost alike."""
        trial = self.ended.trial
        return self.lost_packets * trial.pace.interval_ns / trial.pairs.flows

    @property
    def flows_hit(self) -> int:
        return len(self.ended.lost)

    @property
    def gave_up(self) -> int:
        """Reliable connections whose queue pair failed."""
        return int(self.ended.row["failed_queue_pairs"])


@dataclass(frozen=True)
class Spread:
    """A figure over repetitions. None: one of them has no such time."""

    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        return [value for value in self.values if value is not None]

    @property
    def is_whole(self) -> bool:
        return len(self.known) == len(self.values)

    @property
    def median(self) -> float | None:
        """None: more than half of the repetitions have no such time."""
        endless = [float("inf") if value is None else value for value in self.values]
        middle = median(endless)
        return None if middle == float("inf") else middle

    @property
    def p99(self) -> float | None:
        """None for fewer than P99_FROM repetitions, or if one of them has no such time."""
        if len(self.values) < P99_FROM or not self.is_whole:
            return None
        return percentile(np.array(self.known, np.float64), 0.99)

    @property
    def mean(self) -> Interval | None:
        """None: a repetition has no such time."""
        return interval_of(self.known) if self.is_whole else None


FIGURES: dict[str, Callable[[Measured], float | None]] = {
    "detected_ns": lambda own: own.detected_ns,
    "decided_ns": lambda own: own.decided_ns,
    "in_force_ns": lambda own: own.in_force_ns,
    "restored_ns": lambda own: own.restored_ns,
    "lost_ns": lambda own: own.lost_ns,
    "lost_packets": lambda own: own.lost_packets,
    "flows_hit": lambda own: own.flows_hit,
    "gave_up": lambda own: own.gave_up,
}
"""The figures of a repetition, by their name in documents."""


@dataclass(frozen=True)
class Result:
    """All repetitions of an event under a control plane."""

    plane: Plane
    event: Event
    repetitions: Sequence[Measured]

    @property
    def interval_ns(self) -> int:
        """Between two probes of a flow."""
        return self.repetitions[0].ended.trial.pace.interval_ns

    @property
    def flows(self) -> int:
        """Of probes, in the repetition with most."""
        return max(own.ended.trial.pairs.flows for own in self.repetitions)

    @property
    def packets(self) -> int:
        """That each flow offers."""
        return self.repetitions[0].ended.trial.pace.count

    @property
    def late_ns(self) -> int:
        """How late FRR's answers may be, as the machine was busy."""
        answers = [own.ended.trial.answer for own in self.repetitions]
        return max(own.recording.late_ns if own.recording else 0 for own in answers)

    def spread(self, figure: str) -> Spread:
        return Spread(tuple(FIGURES[figure](own) for own in self.repetitions))
