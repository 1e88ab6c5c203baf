"""Follows the PSNs of a flow's requests in a capture, to tell gaps and repeats.

A PSN has 24 bits; of two, the later is the one less than half the space ahead
(IBTA vol 1, 9.7.1). A gap is a PSN ahead of the one expected: packets between
were lost before this place, or left another way. A repeat is one behind: sent
again, or late.

A READ request takes as many PSNs as its response has packets. A capture does
not tell the path MTU, so after one any PSN that some MTU explains is expected.
"""

from __future__ import annotations

from dataclasses import dataclass

_SPACE = 1 << 24
_HALF = 1 << 23
_SMALLEST_MTU, _LARGEST_MTU = 256, 4096


def psn_difference(a: int, b: int) -> int:
    """How far `a` is ahead of `b`; negative when it is behind."""
    return (a - b + _HALF) % _SPACE - _HALF


@dataclass
class PsnTrail:
    """What one flow's PSNs have shown so far."""

    packets: int = 0
    gaps: int = 0
    missing: int = 0
    """PSNs skipped by the gaps."""
    repeats: int = 0
    _expected: int | None = None
    _slack: int = 0
    """How many PSNs behind `_expected` are right as well."""

    def see(self, psn: int, *, read_bytes: int | None = None) -> None:
        """Takes note of a request; `read_bytes` is the length that a READ request asks for."""
        self.packets += 1
        ahead = 0 if self._expected is None else psn_difference(psn, self._expected)
        if ahead < 0:
            self.repeats += 1
            return
        if ahead > self._slack:
            self.gaps += 1
            self.missing += ahead - self._slack
        fewest, most = _psns_taken(read_bytes)
        self._expected = (psn + fewest) % _SPACE
        self._slack = most - fewest


def _psns_taken(read_bytes: int | None) -> tuple[int, int]:
    if not read_bytes:
        return 1, 1
    return -(-read_bytes // _LARGEST_MTU), -(-read_bytes // _SMALLEST_MTU)
