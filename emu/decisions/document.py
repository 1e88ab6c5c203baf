"""The document of a decision, decide.json, as types. `emu schema decision` prints its schema, which
only gains keys.

Times are emulated nanoseconds, rates bits per second. Shares are parts of 1, of the figure of the
best fabric.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.interval_entries import IntervalsEntry, MeanEntry

DECISION_SCHEMA = "emu.decision/1"


class FigureEntry(TypedDict):
    """The figure that decides."""

    name: str
    """Its name in tables."""
    columns: list[str]
    """The columns of `emu sweep` that it is; the worst of them counts."""
    unit: str
    """`ns`, `bps`, `bytes` or `iops`; empty for counts and ratios."""
    good: Literal["small", "large"]
    """Which values are good."""


class StandingEntry(TypedDict):
    """A fabric beside the best."""

    name: str
    """Its name, with the rate if there are several."""
    fits: bool
    """Whether all runs end, all flows finish and no check fails."""
    faults: list[str]
    """Why it does not fit, in words."""
    value: MeanEntry | None
    """The figure that decides; null if no run has it."""
    behind: MeanEntry | None
    """The share by which it is worse than the best that fits, seed by seed; null if one of the two
    has no figure."""


class PartEntry(TypedDict):
    """Equal parts of a fabric."""

    part: str
    """As `cable, 400Gbit, 5m`."""
    count: int
    """How many there are."""
    price: float
    """Of all of them."""
    watts: float
    """Of all of them."""


class CostEntry(TypedDict):
    """What a fabric costs by the file of prices."""

    currency: str
    """Of all prices."""
    total: float
    """Price of all parts and of their energy."""
    energy: float
    """Price of the energy; 0 if the file has none."""
    watts: float
    """Power of all parts."""
    parts: list[PartEntry]
    """The parts."""


class FabricEntry(StandingEntry):
    """A fabric, and all that was found out about it."""

    fabric: str
    """Its name without the rate."""
    rate_bps: int
    """Rate of the fastest cable to a host."""
    settings: str
    """Where its settings come from, if they were searched; else empty."""
    spec: dict[str, Any]
    """Its spec."""
    figures: dict[str, list[float | None]]
    """Name of a figure -> its value with each seed; null if a flow did not finish."""
    changes: int
    """How many changes were measured; `changes/sensitivity.json` has them all."""
    costly_changes: list[str]
    """Names of those that cost more than 5 %, the most expensive first."""
    cost: CostEntry | None
    """Null without prices."""


class SizeEntry(TypedDict):
    """All fabrics at another size."""

    hosts: int
    """Hosts of the cluster."""
    model: str
    """`packets` or `flow`."""
    settings: dict[str, Any]
    """The keys that make the size; empty for the spec's own."""
    fabrics: list[StandingEntry]
    """Each fabric."""


class LeftOutEntry(TypedDict):
    """What could not be."""

    name: str
    """A fabric, or a size."""
    reason: str
    """Why, in words."""


class Decision(TypedDict):
    """A decision."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec."""
    version: str
    """Version of emu."""
    recommended: str | None
    """Name of the recommended fabric; null if none fits."""
    decided_by: str | None
    """The criterion that decided between the recommended fabric and the next one within the margin;
    null if there is none, or if it is the figure itself."""
    near: list[str]
    """The fabrics within the margin, in the order of the rules."""
    margin: float
    """The share by which a fabric may be worse than the best and count as good."""
    reasons: list[str]
    """The recommendation and the figures that it stands on, in sentences."""
    changes: list[str]
    """What would change it, in sentences."""
    seeds: list[int]
    """Of each run."""
    computed: int
    """Runs that were done by this command; the others were in the folder."""
    figure: FigureEntry
    """The figure that decides."""
    fabrics: list[FabricEntry]
    """All fabrics that were compared."""
    growth: list[SizeEntry]
    """Further sizes; the spec's own by the flow model comes first, if that does any."""
    left_out: list[LeftOutEntry]
    """Fabrics and sizes that could not be."""
    intervals: IntervalsEntry
    """Of all means."""
