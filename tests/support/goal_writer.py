"""Writes GOAL's binary form, as LogGOPSim's txt2bin lays it out, from steps."""

from __future__ import annotations

from struct import pack

from traffic.traces.trace import Does, Trace

_TYPES = {Does.SEND: 1, Does.RECV: 2, Does.CALC: 3}


def write_goal_binary(trace: Trace) -> bytes:
    """Offsets in the table of ranks count from byte 8, behind the first number."""
    sections = [_section(trace, rank) for rank in range(trace.ranks)]
    at, table = 4 + 2 + 16 * trace.ranks, b""
    for section in sections:
        table += pack("<QQ", at, at + len(section))
        at += len(section)
    return pack("<QIBB", 4223, trace.ranks, 0, 0) + table + b"".join(sections)


def _section(trace: Trace, rank: int) -> bytes:
    own = [number for number, step in enumerate(trace.steps) if step.rank == rank]
    place = {number: index for index, number in enumerate(own)}
    rows, appendix, roots = b"", b"", b""
    for number in own:
        step = trace.steps[number]
        ends = [later for later in own if number in trace.steps[later].after]
        starts = [later for later in own if number in trace.steps[later].with_start_of]
        waits = len(step.after) + len(step.with_start_of)
        if not waits:
            roots += pack("<I", place[number])
        size = step.lasts_ns if step.does is Does.CALC else step.size_bytes
        rows += pack("<IBIQIBB", waits, _TYPES[step.does], step.peer, size, step.tag, 0, 0)
        rows += pack("<II", len(ends), len(appendix) // 4)
        appendix += b"".join(pack("<I", place[later]) for later in ends)
        rows += pack("<II", len(starts), len(appendix) // 4)
        appendix += b"".join(pack("<I", place[later]) for later in starts)
    return pack("<II", len(own), len(roots) // 4) + roots + rows + appendix
