"""The document of a sweep, sweep.json, as types. `emu schema sweep` prints its schema, which only
gains keys. The runs themselves are the rows of runs.parquet."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.interval_entries import IntervalsEntry

SWEEP_SCHEMA = "emu.sweep/1"


class VariedEntry(TypedDict):
    """A key that is varied."""

    key: str
    """As in a spec."""
    column: str
    """The column of its values, with their unit at its end."""
    unit: str
    """`ns`, `bps` or `bytes`; empty for other values."""


class Sweep(TypedDict):
    """A sweep."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec."""
    version: str
    """Version of emu."""
    model: str
    """`packets` or `flow`."""
    runs: int
    """Runs of the whole sweep."""
    computed: int
    """Runs that were done by this command; the others were in the folder."""
    failed: int
    """Runs that failed; the column `error` of their rows says why."""
    missing: int
    """Runs that are not done, because the sweep was stopped."""
    varied: list[VariedEntry]
    """The keys that are varied."""
    variants: list[str]
    """Variants of the spec's `compare:`; empty for the spec itself."""
    seeds: list[int]
    """All seeds."""
    results: dict[str, str]
    """Column of a figure -> its unit; empty for counts and ratios."""
    intervals: IntervalsEntry
    """Of the means on the page."""
    rows: NotRequired[list[dict[str, Any]]]
    """The rows of runs.parquet; only `emu sweep --json` has them."""
