"""How fast each congestion control lets a flow start, which decides much of a comparison.

A flow that ends before the first feedback arrives keeps its initial speed. Unless a spec says
otherwise, rates start at line rate, and windows start at the bandwidth-delay product of the path.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.report.run_view import RunFacts
from emu.words import listed

_KEEPS_A_WINDOW = "with a window of one bandwidth-delay product, which does not grow"


def how_each_starts(runs: Sequence[RunFacts]) -> list[str]:
    """A sentence, if several congestion controls are compared, or one of them has a window."""
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
    """Pairs of a run's congestion controls, or of its loss recoveries with a window, and how they
    start. Hosts without congestion control are left out. One control may start in several ways."""
    nics = [run.spec.host(host.name).nic for host in run.topology.hosts]
    starts = ((nic.cc, nic.control(nic.cc).start) for nic in nics if nic.cc != "none")
    windows = ((nic.recovery, _KEEPS_A_WINDOW) for nic in nics if nic.has_window_of_path)
    return list(dict.fromkeys((*starts, *windows)))
