"""Which figures of a sweep are shown, and the Pareto front of two of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from emu.errors import UsageError
from emu.report.run_figures import more_is_better
from emu.spec.diagnostic import unknown_name
from emu.sweeps.statistics import result_columns

MOST_SHOWN = 4
_ENDINGS = (
    "last_completion_ns",
    "fct_slowdown_p99",
    "latency_p99_ns",
    "busbw_bps",
    "step_ns",
    "exposed_communication_ns",
    "iops",
    "deepest_queue_bytes",
    "dropped_packets",
    "retransmitted_packets",
    "pause_frames",
    "ce_marked",
    "credit_wait_ns",
    "median_goodput_bps",
)
"""Figures that are shown unless others are named, the most telling first."""
_MOST_ALIKE = 2
"""Of entries of the traffic with the same figure."""


def shown(runs: pd.DataFrame, varied: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns to show: those that are wanted, else the first that differ between runs.

    Raises UsageError for a figure that there is not.
    """
    known = result_columns(runs, varied)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError("\n".join(unknown_name("result", name, known) for name in unknown))
    if wanted:
        return list(wanted)
    present = [name for name in known if runs[name].notna().any()]
    differing = [name for name in present if runs[name].nunique() > 1]
    telling = [
        name
        for ending in _ENDINGS
        for name in _distinct(runs, [own for own in differing or present if _ends(own, ending)])
    ]
    return telling[:MOST_SHOWN]


def _distinct(runs: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The first of these columns, without those that repeat one before them."""
    chosen: list[str] = []
    for name in columns:
        if not any(runs[name].equals(runs[other]) for other in chosen):
            chosen.append(name)
    return chosen[:_MOST_ALIKE]


def _ends(name: str, ending: str) -> bool:
    """Whether the column is this figure, of the whole fabric or of an entry of the traffic."""
    return (
        name.endswith((f".{ending}", "_iops"))
        if ending == "iops"
        else (name == ending or name.endswith(f".{ending}"))
    )


def front_pair(
    means: pd.DataFrame, columns: Sequence[str], *, wanted: bool
) -> tuple[str, str] | None:
    """Two figures for a Pareto front: the first two that are wanted, else the first and the one
    that most opposes it. None if there are no two."""
    if len(columns) < 2:
        return None
    if wanted:
        return columns[0], columns[1]
    first, *others = columns
    against = [(_agreement(means, first, other), other) for other in others]
    return first, min(against)[1]


def _agreement(means: pd.DataFrame, one: str, other: str) -> float:
    """The rank correlation of how good two figures are: -1 if they oppose each other."""
    known = means[[one, other]].dropna()
    if len(known) < 2 or known[one].nunique() < 2 or known[other].nunique() < 2:
        return 1.0
    sign = 1 if more_is_better(one) == more_is_better(other) else -1
    return sign * float(known[one].rank().corr(known[other].rank()))


def pareto_front(
    ones: Sequence[float], others: Sequence[float], *, more: tuple[bool, bool]
) -> list[int]:
    """The places of the points that no other point beats: none is better in one figure and at least
    as good in the other. `more`: whether a larger value of each figure is better.

    In the order of the first figure, the best first.
    """
    first, second = (
        np.asarray(values, dtype=float) * (-1 if better else 1)
        for values, better in zip((ones, others), more, strict=True)
    )
    front: list[int] = []
    for place in np.lexsort((second, first)):
        if not front or second[place] < second[front[-1]]:
            front.append(int(place))
    return front
