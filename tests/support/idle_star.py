"""The closed form of a lone message's duration between two hosts of a star.

A RoCEv2 WRITE of m bytes, from post to delivery:

    t(m) + a(m)      t: all its packets once at 100 Gb/s (a byte lasts 80 ps)
                     a: 2·500 ns of cable, 600 ns of switch, the first packet once more
"""

from __future__ import annotations

BYTE_NS = 0.08
IDLE_NS = 2 * 500 + 600


def wire_ns(size: int) -> float:
    """t(m)."""
    return (size + 82 * -(-size // 4096) + 16) * BYTE_NS


def latency_ns(size: int) -> float:
    """a(m)."""
    return IDLE_NS + (min(size, 4096) + 98) * BYTE_NS


def acks_ns(size: int, every: int = 16) -> float:
    """Of a message's acknowledgements, one for so many packets."""
    return 86 * -(-size // (every * 4096)) * BYTE_NS


def message_ns(size: int) -> float:
    return wire_ns(size) + latency_ns(size)
