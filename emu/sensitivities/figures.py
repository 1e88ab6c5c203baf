"""The figures that show what a change costs: columns of a run's row.

    p99             of FCT slowdowns of a background load; of latencies of paced messages and I/Os
    iteration time  of training steps and collectives
    completion      of an entry of the traffic that has neither
    pauses          pause frames and the time in pauses, or waits for credit
    losses          dropped and retransmitted packets

Each entry of the traffic has its own figures; of many entries the worst one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.spec.scenario import Spec
from emu.sweeps.axes import label_of
from emu.tuning.goals import Figure, Goal

_SLOWDOWN, _LATENCY = ".fct_slowdown_p99", ".latency_p99_ns"
_OF_IOS = ("read_latency_p99_ns", "write_latency_p99_ns")
_ITERATIONS = (".step_ns", ".iteration_ns")
_COMPLETION = ".last_completion_ns"
_MOST_ALIKE = 3
"""Entries with the same figure that have a column each."""
COUNTS = (
    "pause_frames",
    "paused_ns",
    "credit_wait_ns",
    "dropped_packets",
    "retransmitted_packets",
)


def goals_of(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """The figures in which a change may cost something; small ones are good. `rows`: those of the
    runs without changes."""
    known = dict.fromkeys(key for row in rows for key in row)
    paced = {entry.name for entry in spec.traffic if getattr(entry, "every_ps", None)}
    groups = [
        [name for name in known if name.endswith(_SLOWDOWN)],
        [name for name in known if name.endswith(_LATENCY) and _entry(name) in paced],
        *([name for name in known if name.endswith(way)] for way in _OF_IOS),
        *([name for name in known if name.endswith(kind)] for kind in _ITERATIONS),
    ]
    have_own = {_entry(name) for group in groups for name in group}
    completions = [name for name in known if name.endswith(_COMPLETION)]
    groups.append([name for name in completions if _entry(name) not in have_own])
    return [goal for group in groups for goal in _of_group(group)]


def _of_group(columns: Sequence[str]) -> Iterator[Goal]:
    """A goal for each column, or one for all of them if they are many."""
    if len(columns) > _MOST_ALIKE:
        what = label_of(columns[0].partition(".")[2])
        yield Goal(Figure(f"{what}, worst of {len(columns)}", tuple(columns)), maximise=False)
    else:
        yield from (Goal(Figure(label_of(name), (name,)), maximise=False) for name in columns)


def _entry(column: str) -> str:
    return column.partition(".")[0]


def counts_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of pauses and losses that are not 0 in all of these rows."""
    return [name for name in COUNTS if any(row.get(name) for row in rows)]
