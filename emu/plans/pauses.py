"""Pause frames that testers send (802.3 annex 31D), as bytes without FCS."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from struct import pack
from typing import NamedTuple

from emu.spec.classes import PRIORITIES

MAX_QUANTA = 0xFFFF
QUANTUM_BITS = 512
_TO = bytes.fromhex("0180c2000001")
_FROM = bytes.fromhex("020000000001")
_MAC_CONTROL = 0x8808
_PFC = 0x0101
_SHORTEST = 60


class TimedFrame(NamedTuple):
    """A frame that a node puts on its cable at a time."""

    at_ns: int
    port: str
    """The node's own port, as `h2:leaf1`."""
    content: bytes


def pfc_frame(priorities: Collection[int], quanta: int = MAX_QUANTA) -> bytes:
    """A frame that pauses these priorities; with 0 quanta it lets them send again."""
    enable = sum(1 << priority for priority in priorities)
    times = [quanta if priority in priorities else 0 for priority in range(PRIORITIES)]
    return mac_control(_PFC, pack("!H8H", enable, *times))


def mac_control(opcode: int, parameters: bytes, *, shortest: int = _SHORTEST) -> bytes:
    """A MAC control frame with any opcode, padded to `shortest` bytes."""
    return (_TO + _FROM + pack("!HH", _MAC_CONTROL, opcode) + parameters).ljust(shortest, b"\0")


def every_class_enabled() -> bytes:
    """A PFC frame whose class vector has all 16 bits set, also the reserved ones."""
    return mac_control(_PFC, pack("!H8H", 0xFFFF, *[MAX_QUANTA] * PRIORITIES))


def invalid_opcode() -> bytes:
    """A pause of all priorities, but under an opcode that no standard gives a meaning."""
    return mac_control(0x0F0F, pack("!H8H", 0x00FF, *[MAX_QUANTA] * PRIORITIES))


def truncated() -> bytes:
    """A PFC frame that ends within its times."""
    return mac_control(_PFC, pack("!H2H", 0x00FF, MAX_QUANTA, MAX_QUANTA), shortest=0)


def refreshed(
    port: str, priorities: Collection[int], rate_bps: int, start_ns: int, end_ns: int
) -> Iterator[TimedFrame]:
    """A pause from start to end: sent again after half of its time, and ended by 0 quanta."""
    half_ns = max(1, MAX_QUANTA * QUANTUM_BITS * 1_000_000_000 // rate_bps // 2)
    for at_ns in range(start_ns, end_ns, half_ns):
        yield TimedFrame(at_ns, port, pfc_frame(priorities))
    yield TimedFrame(end_ns, port, pfc_frame(priorities, 0))
