"""The document of a sensitivity, sensitivity.json, as types. `emu schema sensitivity` prints its
schema, which only gains keys.

Shares are parts of 1, of the figure without the change.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.interval_entries import DifferenceEntry, IntervalsEntry

SENSITIVITY_SCHEMA = "emu.sensitivity/1"


class FigureEntry(TypedDict):
    """A figure by which costs are measured."""

    name: str
    """Its name in tables."""
    columns: list[str]
    """The columns of `emu sweep` that it is; the worst of them counts."""
    unit: str
    """`ns`, `bps`, `bytes` or `iops`; empty for counts and ratios."""


class CountEntry(TypedDict):
    """A count without and with the change."""

    unit: str
    """`ns` or `bytes`; empty for packets and frames."""
    before: DifferenceEntry | None
    """Without the change."""
    after: DifferenceEntry | None
    """With it."""
    difference: DifferenceEntry | None
    """Seed by seed."""


class ChangeEntry(TypedDict):
    """A change, and what it costs."""

    name: str
    """Its name in tables."""
    kind: Literal["setting", "mistake", "failure"]
    """A tuned setting with another value, a mistake of operators, or a part that fails."""
    what: str
    """What is changed, in words."""
    settings: dict[str, Any]
    """Key -> value: the change, as for --set."""
    costs_more: bool
    """Whether a figure is higher by more than `threshold`, or flows do not finish."""
    stuck_seeds: int
    """Seeds with flows that do not finish, or whose run fails, though not without the change."""
    remarks: list[str]
    """What else is wrong, in words."""
    shares: dict[str, DifferenceEntry | None]
    """Figure -> the share by which it is higher with the change; below 0 it is lower. It also
    differs if it more than doubles with some of the seeds. Null if no seed has both."""
    counts: dict[str, CountEntry]
    """Column of a count -> how it changes."""


class LeftOutEntry(TypedDict):
    """A change that this fabric cannot have."""

    name: str
    """Its name in tables."""
    kind: Literal["setting", "mistake", "failure"]
    """As of changes."""
    reason: str
    """Why, in words."""


class FabricEntry(TypedDict):
    """A fabric with all its changes."""

    name: str
    """The fabric's or the variant's."""
    fabric: str
    """`roce` or `ib`."""
    switch: str
    """The switch that changes of one switch are made at."""
    sender: str
    """The host that changes of one sender are made at."""
    receiver: str
    """The host that changes of one receiver are made at."""
    figures: list[FigureEntry]
    """The figures by which costs are measured."""
    changes: list[ChangeEntry]
    """The most expensive first."""
    left_out: list[LeftOutEntry]
    """Changes that this fabric cannot have."""


class Sensitivity(TypedDict):
    """What changes cost."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec."""
    version: str
    """Version of emu."""
    seeds: list[int]
    """Of each run."""
    computed: int
    """Runs that were done by this command; the others were in the folder."""
    failed: int
    """Runs that failed."""
    missing: int
    """Runs that are not done, because the measurement was stopped."""
    threshold: float
    """The share from which a change counts as costly."""
    fabrics: list[FabricEntry]
    """Each fabric."""
    intervals: IntervalsEntry
    """Of all shares and counts."""
