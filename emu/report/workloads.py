"""Whether the runs of a comparison had the same to carry: only then can it be said who suits.

    an entry that some do not have      they have less to carry than the others
    an entry with other bytes or hosts  of a collective: of a rank's buffer

How it is carried, by which priority, algorithm or queue pairs, is what runs are compared for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emu.report.facts import RunFacts
from emu.report.words import listed
from emu.units import format_size


@dataclass(frozen=True)
class Load:
    """What one traffic entry asks for."""

    bytes: int | None
    """None: as much as goes into a time, so that it is a result."""
    hosts: frozenset[str]


def loads(run: RunFacts) -> dict[str, Load]:
    """By the entries' names."""
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
    """Groups of runs that have the same to carry."""
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
    """One sentence, or none where all runs have the same to carry."""
    if len(alike(runs)) < 2:
        return []
    known = {run.name: loads(run) for run in runs}
    entries = dict.fromkeys(name for own in known.values() for name in own)
    parts = [part for entry in entries for part in _parts(entry, known)]
    return [f"Not all carry the same, and only those that do are ranked: {listed(parts)}."]


def _parts(entry: str, known: dict[str, dict[str, Load]]) -> Iterator[str]:
    missing = [name for name, own in known.items() if entry not in own]
    if missing:
        yield f"{listed(missing)} {'has' if len(missing) == 1 else 'have'} no {entry}"
    kinds: dict[Load, list[str]] = {}
    for name, own in known.items():
        if entry in own:
            kinds.setdefault(own[entry], []).append(name)
    if len(kinds) > 1:
        for load, names in kinds.items():
            size = "" if load.bytes is None else f"{format_size(load.bytes)} "
            yield f"{entry} is {size}among {len(load.hosts)} hosts in {listed(names)}"
