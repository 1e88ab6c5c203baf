"""Processor time over time, sampled now and then: which programs used the processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class CpuSamples:
    """n samples."""

    time_ns: Sequence[int]
    """Wall-clock time since the emulated time 0. The first sample is before that."""
    seconds: Mapping[str, Sequence[float]]
    """User of the processors -> n values: the time it has used so far."""

    @property
    def last(self) -> dict[str, float]:
        """The total of each user."""
        return {name: own[-1] for name, own in self.seconds.items()}


NO_CPU_SAMPLES = CpuSamples((), MappingProxyType({}))
