"""The number of cables between nodes, by breadth-first search.

h1 ── leaf1 ── spine1 ── leaf2      from h1: leaf1 1, spine1 2, leaf2 3
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def distances(neighbours: Mapping[str, Iterable[str]], start: Iterable[str]) -> dict[str, int]:
    """Each reachable node -> the least number of cables between it and any node of `start`."""
    found = dict.fromkeys(start, 0)
    waiting = list(found)
    for near in waiting:  # grows while it is read
        for far in neighbours[near]:
            if far not in found:
                found[far] = found[near] + 1
                waiting.append(far)
    return found
