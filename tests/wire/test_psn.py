"""Gaps and repeats in a flow's PSNs."""

from __future__ import annotations

import pytest

from emu.wire.psn import PsnSequence, psn_difference

LAST = (1 << 24) - 1


def gaps_missing_repeats(*psns: int) -> tuple[int, int, int]:
    seen = PsnSequence()
    for psn in psns:
        seen.see(psn)
    return seen.gaps, seen.missing, seen.repeats


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [(0, 0, 0), (1, 0, 1), (0, 1, -1), (0, LAST, 1), (LAST, 0, -1), (1 << 23, 0, -(1 << 23))],
)
def test_psn_difference_wraps(a: int, b: int, difference: int) -> None:
    """Half of the space is ahead, half behind."""
    assert psn_difference(a, b) == difference


def test_consecutive_psns_are_in_order() -> None:
    """Also over the wrap."""
    assert gaps_missing_repeats(LAST - 1, LAST, 0, 1) == (0, 0, 0)


def test_gap_counts_the_missing_psns() -> None:
    """One gap, however many PSNs it skips."""
    assert gaps_missing_repeats(5, 6, 10) == (1, 3, 0)


def test_go_back_n_counts_repeats() -> None:
    """After a loss upstream, packets behind the furthest PSN are repeats."""
    assert gaps_missing_repeats(1, 2, 4, 5, 3, 4, 5, 6) == (1, 1, 3)


def test_read_takes_the_psns_of_its_response() -> None:
    """With any MTU from 256 to 4096; beyond that it is a gap."""
    for following, gaps in ((7, 0), (8, 0), (37, 0), (38, 1), (6, 0)):
        seen = PsnSequence()
        seen.see(5, read_bytes=8192)
        seen.see(following)
        assert seen.gaps == gaps
        assert seen.repeats == (following == 6)
