"""The document of a measurement, convergence.json, as types. `emu schema convergence` prints its
schema, which only gains keys.

Times are since the event.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.interval_entries import IntervalsEntry, RunsEntry

CONVERGENCE_SCHEMA = "emu.convergence/1"

EventName = Literal["link-down", "link-silent", "switch-down", "link-up"]


class PlaneEntry(TypedDict):
    """A control plane."""

    name: str
    """Its name in tables."""
    fabric: Literal["roce", "ib"]
    """The fabric that it is of."""
    what: str
    """What it is, in words."""


class NotMeasuredEntry(TypedDict):
    """A control plane or an event that the spec's fabric cannot have."""

    name: str
    """Its name."""
    reason: str
    """Why, in words."""


class RepetitionEntry(TypedDict):
    """One repetition of an event under a control plane."""

    place: str
    """The cable, by a port of it, or the switch."""
    seed: int
    """Of the run."""
    detected_ns: float | None
    """When the control plane knew; null: never."""
    decided_ns: float | None
    """When it had nothing more to say; null: it said nothing."""
    in_force_ns: float | None
    """When the last switch changed its routes; null: none did."""
    restored_ns: float | None
    """The loss-derived time of the flow that lost most; null: losses lasted to the end of the
    run."""
    lost_ns: float
    """The loss-derived time of all flows together, divided by their number."""
    lost_packets: int
    """Probes that were lost."""
    flows_hit: int
    """Flows of probes that lost any."""
    flows: int
    """Flows of probes."""
    gave_up: int
    """Reliable connections whose queue pair failed."""
    late_ns: int
    """How late FRR's answer may be, as the machine was busy; on the wall clock."""


class SpreadEntry(TypedDict):
    """A figure over the repetitions."""

    median: float | None
    """Null: in half of the repetitions or more there is none."""
    low: float | None
    """The least."""
    high: float | None
    """The most."""
    p99: float | None
    """The 99th percentile; null for fewer than 20 repetitions."""
    mean: RunsEntry | None
    """The mean with its interval; null if a repetition has none."""


class ResultEntry(TypedDict):
    """An event under a control plane."""

    plane: str
    """The control plane."""
    event: EventName
    """What happened."""
    interval_ns: int
    """Between two probes of a flow, which is the resolution of lost times."""
    packets: int
    """Probes of each flow."""
    figures: dict[str, SpreadEntry]
    """Name of a figure of `repetitions` -> the figure over all repetitions."""
    repetitions: list[RepetitionEntry]
    """Each repetition."""


class MistakeEntry(TypedDict):
    """A mistake of operators; `none` is the same without one."""

    name: str
    """Its name in tables."""
    plane: str
    """The control plane."""
    what: str
    """What it is, in words, with the place."""
    settings: dict[str, Any]
    """Key -> value: the mistake, as for --set."""
    lost_share: float
    """Of all probes, those lost although nothing fails."""
    uplink_bytes: list[int]
    """What each uplink of the leaf sent while nothing failed."""
    failure: RepetitionEntry
    """The run in which a link then fails."""


class Convergence(TypedDict):
    """How long traffic is lost under each control plane."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec."""
    version: str
    """Version of emu."""
    computed: int
    """Runs that were done by this command; the others were in the folder."""
    probe_bytes: int
    """Payload of a probe."""
    planes: list[PlaneEntry]
    """The control planes that were compared."""
    left_out: list[NotMeasuredEntry]
    """Control planes and events that the fabric cannot have."""
    results: list[ResultEntry]
    """By event, then by control plane."""
    mistakes: list[MistakeEntry]
    """None unless they are asked for."""
    not_compared: str
    """What the times consist of, and what they leave out, in words."""
    intervals: IntervalsEntry
    """Of all means."""
