"""Whether the runs of a comparison had the same workload. Only such runs are ranked.

    an entry that some runs lack         these runs carry less than the others
    an entry with other bytes or hosts   for a collective, the bytes of one rank's buffer count

Priority, algorithm and number of queue pairs may differ, because comparisons are about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emu.report.run_view import RunFacts
from emu.units import format_size
from emu.words import listed

MOST_NAMED = 4
"""The most missing entries that a sentence names. It counts the others."""


@dataclass(frozen=True)
class Load:
    """The workload of one traffic entry."""

    bytes: int | None
    """None for an entry that sends for a fixed time, where the bytes are a result."""
    hosts: frozenset[str]


def loads(run: RunFacts) -> dict[str, Load]:
    """The load of each traffic entry, by name."""
    of_ranks = {job.name: job.bytes for job in run.recording.jobs}
    cut_short = run.spec.workload().cut_short
    return {
        name: Load(
            None if name in cut_short else of_ranks.get(name, sum(flow.bytes for flow in flows)),
            frozenset(host for flow in flows for host in (flow.src, flow.dst)),
        )
        for name, flows in run.traffic.items()
    }


def alike(runs: Sequence[RunFacts]) -> list[list[RunFacts]]:
    """Groups of runs with the same workload."""
    groups: list[tuple[dict[str, Load], list[RunFacts]]] = []
    for run in runs:
        own = loads(run)
        group = next((group for known, group in groups if known == own), None)
        if group is None:
            groups.append((own, [run]))
        else:
            group.append(run)
    return [group for _, group in groups]


def how_they_differ(runs: Sequence[RunFacts]) -> list[str]:
    """One sentence, or none where all runs have the same workload."""
    if len(alike(runs)) < 2:
        return []
    known = {run.name: loads(run) for run in runs}
    parts = [*_missing(known), *_other(known)]
    differ = "The workloads differ, and only runs with the same workload are ranked"
    return [f"{differ}: {'; '.join(parts)}."]


def _entries(known: dict[str, dict[str, Load]]) -> list[str]:
    return list(dict.fromkeys(name for own in known.values() for name in own))


def _missing(known: dict[str, dict[str, Load]]) -> Iterator[str]:
    """Clauses about missing entries. Runs that lack the same entries share a clause."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for name, own in known.items():
        entries = tuple(entry for entry in _entries(known) if entry not in own)
        if entries:
            lacking.setdefault(entries, []).append(name)
    for entries, names in lacking.items():
        more = len(entries) - MOST_NAMED
        missing = [*entries[:MOST_NAMED], f"{more} others"] if more > 1 else entries
        yield f"{listed(names)} {'has' if len(names) == 1 else 'have'} no {listed(missing)}"


def _other(known: dict[str, dict[str, Load]]) -> Iterator[str]:
    """Clauses about entries that differ between runs in their bytes or hosts."""
    for entry in _entries(known):
        kinds: dict[Load, list[str]] = {}
        for name, own in known.items():
            if entry in own:
                kinds.setdefault(own[entry], []).append(name)
        if len(kinds) > 1:
            yield f"{entry} is {listed([_in_runs(*kind) for kind in kinds.items()])}"


def _in_runs(load: Load, names: Sequence[str]) -> str:
    size = "" if load.bytes is None else f"{format_size(load.bytes)} "
    return f"{size}among {len(load.hosts)} hosts in {listed(names)}"
