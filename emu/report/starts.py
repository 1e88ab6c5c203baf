"""How fast each congestion control lets a flow begin: half of what a comparison of them shows.

A flow that is over before the first feedback comes back is as fast as it began. Rates begin at line
rate, windows with what the path holds, unless a spec says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.report.phrases import listed
from emu.report.run_view import RunFacts

_KEEPS_A_WINDOW = "with a window of one BDP, which is what the path holds, and no more later"


def how_each_starts(runs: Sequence[RunFacts]) -> list[str]:
    """A sentence where several congestion controls are compared, or one that has a window."""
    starts: dict[str, list[tuple[str, str]]] = {}
    for run in runs:
        for cc, start in _starts_in(run):
            starts.setdefault(start, []).append((run.name, cc))
    controls = {cc for own in starts.values() for _, cc in own}
    if len(controls) < 2 and not any("window" in start for start in starts):
        return []
    clauses = [
        f"{listed([cc if cc == name else f'{cc} ({name})' for name, cc in own])}"
        f" {'start' if len(own) > 1 else 'starts'} {start}"
        for start, own in starts.items()
    ]
    return [f"How flows begin: {'; '.join(clauses)}."]


def _starts_in(run: RunFacts) -> list[tuple[str, str]]:
    """Congestion control and how it starts, of a run's hosts, and the window of selective repeat;
    those that have none are left out. One control may start in several ways."""
    nics = [run.spec.host(host.name).nic for host in run.topology.hosts]
    starts = ((nic.cc, nic.control(nic.cc).start) for nic in nics if nic.cc != "none")
    windows = ((nic.recovery, _KEEPS_A_WINDOW) for nic in nics if nic.has_window_of_path)
    return list(dict.fromkeys((*starts, *windows)))
