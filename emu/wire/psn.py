"""Follows the PSNs of a flow's requests in a capture, to count gaps and repeats.

A PSN has 24 bits. PSN a is later than b if it is less than half the space ahead of
b (IBTA vol 1, 9.7.1). A gap is a PSN ahead of the expected one: packets between
them were lost earlier, or took another path. A repeat is a PSN behind the expected
one: the packet was sent again, or is late.

A READ request takes as many PSNs as its response has packets. A capture does not
contain the path MTU. After a READ request, every PSN that fits some MTU is
therefore accepted.
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
class PsnSequence:
    """The gaps and repeats among one flow's PSNs so far."""

    packets: int = 0
    gaps: int = 0
    missing: int = 0
    """PSNs skipped by the gaps."""
    repeats: int = 0
    _expected: int | None = None
    _slack: int = 0
    """How many PSNs after `_expected` are accepted as well."""

    def see(self, psn: int, *, read_bytes: int | None = None) -> None:
        """Counts a request. `read_bytes` is the length of a READ request."""
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
