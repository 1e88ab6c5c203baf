"""Variants over several seeds in a comparison's document."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.interval_entries import DifferenceEntry, RunsEntry


class FigureOverSeedsEntry(RunsEntry):
    """A figure of a variant."""

    unit: str
    """`ns`, `bps`, `bytes` or `iops`; empty for counts and ratios."""


_From = TypedDict(
    "_From", {"from": Annotated[str, Field(description="The variant that it is compared with.")]}
)
"""`from` is a keyword, and so cannot be the name of a field of a class."""


class PairOverSeedsEntry(DifferenceEntry, _From):
    """How a figure differs between two variants."""

    of: str
    """The variant whose figure is higher by this."""
    figure: str
    """Name of the figure."""
    unit: str
    """As of the figure."""


class OverSeedsEntry(TypedDict):
    """Variants over several seeds."""

    seeds: list[int]
    """Of each variant."""
    method: str
    """How intervals are computed."""
    resamples: int
    """Of the bootstrap."""
    level: float
    """The level of confidence, as a part of 1."""
    variants: dict[str, dict[str, FigureOverSeedsEntry]]
    """Variant -> figure -> its mean."""
    differences: list[PairOverSeedsEntry]
    """Each figure of each pair of variants; `from` is the other variant."""
