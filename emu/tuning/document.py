"""The document of a search, tune.json, as types. `emu schema tune` prints its schema, which only
gains keys."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.interval_entries import IntervalsEntry, RunsEntry

TUNE_SCHEMA = "emu.tune/1"


class ParameterEntry(TypedDict):
    """A key that is searched."""

    key: str
    """As in a spec."""
    values: str
    """Its range or its values, as for --vary."""
    why: str
    """Where a range comes from that emu chose; empty for one of the user's."""
    column: str
    """The column of its values in runs.parquet."""


class GoalEntry(TypedDict):
    """A goal of the search."""

    name: str
    """Its name in tables."""
    maximise: bool
    """Whether large values are good."""
    columns: list[str]
    """The columns of `emu sweep` that it is; the worst of them counts."""
    unit: str
    """`ns`, `bps`, `bytes` or `iops`; empty for counts and ratios."""


class TrialEntry(TypedDict):
    """A trial that has ended."""

    trial: int
    """Its number in the study."""
    how: Literal["complete", "pruned", "broken", "failed"]
    """With all seeds; ended early because it was behind; ended because it broke a constraint; or
    its run failed."""
    settings: dict[str, Any]
    """Key -> value."""
    means: list[float]
    """The mean of each goal over the seeds that were run; empty if there were none."""
    seeds: list[int]
    """The seeds that were run."""
    broken: dict[str, float]
    """Constraint -> by how much it was violated, at most."""
    error: str
    """Why a run failed; else empty."""


class ContestEntry(TypedDict):
    """The winner and a rival under a load, with held-out seeds."""

    rival: str
    """Name of the settings that it is compared with: the spec's, the defaults, a preset."""
    load: float
    """Factor of the load; 1 for the spec's own."""
    changes: dict[str, Any]
    """Key -> value: what makes this load."""
    verdict: Literal["better", "no difference shown", "worse"]
    """What the winner is."""
    violations: int
    """Seeds with which the rival violates a constraint, fails, or has no figure of a goal."""
    gains: dict[str, RunsEntry | None]
    """Goal -> by how much the winner is better, seed by seed; null if no seed has both."""


class JudgementEntry(TypedDict):
    """Whether the winner is accepted, and why."""

    sentences: list[str]
    """The reasons."""
    winner_violations: dict[str, int]
    """Load -> seeds with which the winner violates a constraint, fails or has no figure of a
    goal."""
    contests: list[ContestEntry]
    """Each rival under each load."""


class Tune(TypedDict):
    """A search."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec."""
    version: str
    """Version of emu."""
    model: str
    """`packets` or `flow`."""
    study: str
    """Name of the study in study.db."""
    varied: list[ParameterEntry]
    """The keys that are searched."""
    goals: list[GoalEntry]
    """What is minimised or maximised."""
    constraints: list[str]
    """What must hold, as for --subject-to."""
    seeds: list[int]
    """Of each trial."""
    held_out_seeds: list[int]
    """Of the judgement; no trial had them."""
    computed: int
    """Runs that were done by this command; the others were in the folder."""
    stopped: bool
    """Whether the search was stopped; the same command goes on."""
    trials: list[TrialEntry]
    """All trials that have ended, in order."""
    importances: dict[str, dict[str, float]]
    """Goal -> key -> its share in reaching the best trials; empty with too few trials."""
    front: list[int]
    """Numbers of the trials of the Pareto front."""
    winner: TrialEntry | None
    """The best trial; null if none kept all constraints with all seeds."""
    accepted: bool
    """Whether the winner is better than all rivals with held-out seeds and loads."""
    judgement: JudgementEntry | None
    """Null without a winner, or if the search was stopped before."""
    intervals: IntervalsEntry
    """Of all gains."""
