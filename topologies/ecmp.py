"""The seed of a switch's ECMP hash.

Every switch has its own: with one seed for all, the second tier would send
each flow the way the first has chosen, and leave its other ports idle
(polarisation).
"""

from __future__ import annotations

from topologies.graph import Switch

_SEED_BITS = 48
_INDEX_BITS = 16


def ecmp_seed(seed: int, switch: Switch) -> int:
    """64 bits: the low 48 of the fabric's seed, then the switch's index."""
    return (seed % (1 << _SEED_BITS)) << _INDEX_BITS | switch.index
