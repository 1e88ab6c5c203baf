"""Processor time, looked at every now and then: who had the processors, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class CpuSamples:
    """n looks."""

    time_ns: Sequence[int]
    """n of them, wall-clock time since the emulated time 0; the first look is before that."""
    seconds: Mapping[str, Sequence[float]]
    """For each user of the processors n values: what it has used so far."""

    @property
    def last(self) -> dict[str, float]:
        """What each has used in all."""
        return {name: own[-1] for name, own in self.seconds.items()}


NO_CPU_SAMPLES = CpuSamples((), MappingProxyType({}))
