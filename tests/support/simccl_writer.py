"""Writes flow files as SimCCL does: every collective rank by rank, and `;` between numbers."""

from __future__ import annotations

from collections.abc import Sequence

HEADER = (
    "collective,op,data_size,algorithm,protocol,channel_id,flow_id,src,dest,flow_size,"
    "chunk_id,chunk_count,conn_type,parent_flow_ids,prev_flow_ids"
)


def all_to_all(ranks: int, size_bytes: int) -> str:
    """Each rank sends a piece of its buffer to every other; nothing waits."""
    piece = size_bytes // ranks
    pairs = [(src, dst) for src in range(ranks) for dst in range(ranks) if src != dst]
    rows = [
        f"EP_0_0_0_3_{size_bytes},3,{size_bytes},1,0,0,{number},{src},{dst},{piece},0,1,PTP,,"
        for number, (src, dst) in enumerate(pairs)
    ]
    return "\n".join([HEADER, *rows]) + "\n"


def ring(
    ranks: int, size_bytes: int, steps: int, *, name: str = "TP_0", first: int = 0
) -> Sequence[str]:
    """The lines of a ring: in each step a rank sends what it got in the step before."""
    piece, rows = size_bytes // ranks, []
    for rank in range(ranks):
        before = (rank - 1) % ranks
        for step in range(steps):
            number, parent = (first + step * ranks + rank for rank in (rank, before))
            parents = str(parent - ranks) if step else ""
            rows.append(
                f"{name},0,{size_bytes},1,2,0,{number},{rank},{(rank + 1) % ranks},{piece},{step},"
                f"{ranks - 1},RING,{parents},{before}"
            )
    return rows


def written(*rows: str) -> str:
    return "\n".join([HEADER, *rows]) + "\n"
