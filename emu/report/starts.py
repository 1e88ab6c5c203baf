"""How fast each congestion control lets a flow begin: half of what a comparison of them shows.

A flow that is over before the first feedback comes back is as fast as it began. Rates begin at line
rate, windows with what the path holds, unless a spec says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.report.facts import RunFacts
from emu.report.words import listed


def how_each_starts(runs: Sequence[RunFacts]) -> list[str]:
    """A sentence where several congestion controls are compared, or one that has a window."""
    starts: dict[str, dict[str, str]] = {}
    for run in runs:
        for cc, start in _starts_in(run).items():
            starts.setdefault(start, {})[run.name] = cc
    controls = {cc for of_run in starts.values() for cc in of_run.values()}
    if len(controls) < 2 and not any("window" in start for start in starts):
        return []
    clauses = [
        f"{listed([cc if cc == name else f'{cc} ({name})' for name, cc in of_run.items()])}"
        f" {'start' if len(of_run) > 1 else 'starts'} {start}"
        for start, of_run in starts.items()
    ]
    return [f"How flows begin: {'; '.join(clauses)}."]


def _starts_in(run: RunFacts) -> dict[str, str]:
    """Congestion control of a run's hosts -> how it starts; those that have none are left out."""
    nics = [run.spec.host(host.name).nic for host in run.topology.hosts]
    return {nic.cc: nic.control(nic.cc).start for nic in nics if nic.cc != "none"}
