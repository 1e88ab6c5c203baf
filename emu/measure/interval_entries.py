"""Intervals over seeds (`emu.measure.bootstrap`) in JSON documents."""

from __future__ import annotations

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.bootstrap import LEVEL, METHOD, RESAMPLES, Interval


class MeanEntry(TypedDict):
    """A mean over the seeds, and the interval that has it."""

    mean: float
    """The mean."""
    low: float | None
    """Low end of the interval; null for a single run."""
    high: float | None
    """High end of the interval; null for a single run."""


class RunsEntry(MeanEntry):
    """The same, with the number of runs."""

    runs: int
    """How many runs it is made of."""


class DifferenceEntry(RunsEntry):
    """A difference, taken seed by seed."""

    differs: bool
    """Whether the interval excludes 0, and there are enough seeds to say so."""


class IntervalsEntry(TypedDict):
    """How intervals are computed."""

    method: str
    """Name of the method."""
    resamples: int
    """Of the bootstrap."""
    level: float
    """The level of confidence, as a part of 1."""


def mean_entry(own: Interval) -> MeanEntry:
    return {"mean": own.mean, "low": own.low, "high": own.high}


def runs_entry(own: Interval) -> RunsEntry:
    return {**mean_entry(own), "runs": own.values}


def difference_entry(own: Interval) -> DifferenceEntry:
    return {**runs_entry(own), "differs": own.excludes_zero}


def intervals_entry() -> IntervalsEntry:
    """Of all intervals."""
    return {"method": METHOD, "resamples": RESAMPLES, "level": LEVEL}
