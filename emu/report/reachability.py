"""The measured reachability of a lab's places, as a table: a line for each pair of kinds of places.

from     to       icmp      tcp/22   udp/161
mgmt     agents   yes       yes      no
agents   agents   no        no       2 of 56
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu.measure.reachability import MeasuredCell

_SHOWN = 20


def lines_of(cells: Sequence[MeasuredCell]) -> Iterator[str]:
    """The table, and below it what differs from the spec."""
    services = sorted({cell.service for cell in cells})
    groups: dict[tuple[str, str], list[MeasuredCell]] = {}
    for cell in cells:
        groups.setdefault((cell.source_kind, cell.target_kind), []).append(cell)
    rows = [
        (*pair, *(_share([cell for cell in own if cell.service == one]) for one in services))
        for pair, own in groups.items()
    ]
    yield from _aligned([("from", "to", *services), *rows])
    wrong = [cell for cell in cells if cell.is_wrong]
    yield from map(str, wrong[:_SHOWN])
    if len(wrong) > _SHOWN:
        yield f"and {len(wrong) - _SHOWN} more; --json lists them all"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def _share(cells: Sequence[MeasuredCell]) -> str:
    """How many of the cells were reached."""
    known = [cell.reached for cell in cells if cell.reached is not None]
    if not cells:
        return ""
    if not known:
        return "?"
    if len(set(known)) == 1:
        return "yes" if known[0] else "no"
    return f"{sum(known)} of {len(known)}"
