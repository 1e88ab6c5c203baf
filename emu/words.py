"""Lists and counts as sentences have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def listed(words: Sequence[str], most: int | None = None) -> str:
    """`a`, `a and b`, `a, b and c`; of more than `most` words, `a, b and 12 more`."""
    if most is not None and len(words) > most:
        return shortened(words, most)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def shortened(words: Sequence[str], most: int) -> str:
    """`a, b, c`; of more than `most` words, `a, b and 12 more`."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def counted(count: int, noun: str) -> str:
    """`1 port`, `2 ports`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def on_hosts(counts: Mapping[str, int]) -> str:
    """How many there are on which hosts: `2 on h1, 1 on h3`."""
    return ", ".join(f"{count} on {host}" for host, count in counts.items())
