"""Process groups of Chakra's traces: the ranks that take part in a collective, by name.

A collective's attribute `pg_name` names its group. Its ranks are listed in one of two places:

    {"0": [0, 1], "1": {"ranks": [2, 3]}}      a file for all ranks, ASTRA-sim's
                                               communicator groups
    [{"pg_name": "0", "ranks": [0, 1]}, ...]   in the trace itself: the first input of a
                                               metadata node, as in PyTorch's traces

In PyTorch's traces an empty list of ranks means all ranks.
"""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from emu.regular import read_regular
from traffic.traces.trace import LONGEST_BYTES, Group, TraceError, whole_number

Groups = Mapping[str, Group]


def read_groups(path: Path) -> dict[str, Group]:
    """The groups in a file. Raises TraceError, OSError."""
    try:
        ranks_by_name = json.loads(read_regular(path, LONGEST_BYTES).decode("utf-8"))
        return {
            name: _group(name, ranks["ranks"] if isinstance(ranks, dict) else ranks)
            for name, ranks in ranks_by_name.items()
        }
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise TraceError(
            path.name, 'is not a file of process groups; write {"0": [0, 1], "1": [2, 3]}'
        ) from None


def groups_in(values: str, ranks: int, where: str) -> dict[str, Group]:
    """The groups in a metadata node's inputs, if there are any. Raises TraceError."""
    if "pg_name" not in values:
        return {}
    try:
        (groups_json,) = literal_eval(values)
        all_ranks = range(ranks)
        return {
            str(one["pg_name"]): _group(str(one["pg_name"]), one["ranks"] or all_ranks)
            for one in json.loads(groups_json)
        }
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise TraceError(where, "has process groups that are not understood") from None


def group_of_all(ranks: int) -> Group:
    """The group of a collective that names none."""
    return Group("", tuple(range(ranks)))


def group_of(name: str, groups: Groups, rank: int, ranks: int, where: str) -> Group:
    """The group of that name, which must include this rank. Raises TraceError."""
    if not name:
        return group_of_all(ranks)
    if name not in groups:
        raise TraceError(
            where,
            f"names process group {name} (pg_name), whose ranks are not listed; name a file with "
            "groups",
        )
    group = groups[name]
    out_of_range = [other for other in group.ranks if not 0 <= other < ranks]
    if out_of_range:
        raise TraceError(
            where,
            f"process group {name} has rank {out_of_range[0]}, but the trace has {ranks} ranks",
        )
    if rank not in group.ranks:
        ranks_text = ", ".join(map(str, group.ranks))
        raise TraceError(
            where, f"names process group {name}, which has ranks {ranks_text} but not this one"
        )
    return group


def _group(name: str, ranks: Iterable[Any]) -> Group:
    """Raises ValueError if there are no ranks, or a rank occurs twice."""
    members = tuple(map(whole_number, ranks))
    if not members or len(set(members)) < len(members):
        raise ValueError
    return Group(name, members)
