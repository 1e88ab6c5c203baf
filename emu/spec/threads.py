"""How many threads run a fabric on the virtual clock, and into how many parts they cut it."""

from __future__ import annotations

import os

_HOSTS_OF_A_PART = 64
"""A part that is smaller than this has too little to do in a window."""
_PARTS_OF_A_THREAD = 4
"""A thread that is done early takes a part of another."""


def threads_for(hosts: int) -> int:
    """As many threads as pay for themselves on this machine: 1 for a small fabric."""
    return min(_sensible_parts(hosts), len(os.sched_getaffinity(0)))


def parts_for(hosts: int, threads: int) -> int:
    """The number of parts for so many threads: 1 for one thread."""
    if threads == 1:
        return 1
    return max(threads, min(_sensible_parts(hosts), _PARTS_OF_A_THREAD * threads))


def _sensible_parts(hosts: int) -> int:
    return max(1, hosts // _HOSTS_OF_A_PART)
