"""Frames of a raw capture."""

from __future__ import annotations

from emu.bindings.fabric import FrameKind


def frames_of(records: bytes) -> list[tuple[FrameKind, bytes]]:
    """Kind and bytes of each capture record (layout: tap.h)."""
    frames = []
    at = 0
    while at < len(records):
        stored = int.from_bytes(records[at + 24 : at + 28], "little")
        frames.append((FrameKind(records[at + 28]), records[at + 32 : at + 32 + stored]))
        at += 32 + -(-stored // 8) * 8
    return frames
