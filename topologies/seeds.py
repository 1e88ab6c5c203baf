"""Seeds of the parts of a fabric, derived from the fabric's seed.

Every switch hashes flows with a seed of its own. With a common seed, the second tier would repeat
the choices of the first and leave some of its ports idle (polarisation). Every port draws marks
with a seed of its own.
"""

from __future__ import annotations

from topologies.graph import Switch

_SEED_BITS = 48
_INDEX_BITS = 16
_GOLDEN_RATIO = 0x9E3779B1


def ecmp_seed(seed: int, switch: Switch) -> int:
    """64 bits: the low 48 of the fabric's seed, then the switch's index."""
    return (seed % (1 << _SEED_BITS)) << _INDEX_BITS | switch.index


def draw_seed(seed: int, port_index: int) -> int:
    """32 bits, for the WRED draws of the port with this index in the fabric."""
    return (seed + port_index) * _GOLDEN_RATIO % (1 << 32)


def fault_seed(seed: int, number: int, port_index: int) -> int:
    """64 bits, for what the fault with this number in the spec draws at that port."""
    return (seed % (1 << _SEED_BITS)) << _INDEX_BITS ^ (number + 1) << 56 ^ port_index
