"""Writes execution traces of Chakra byte by byte, without a protobuf library."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

METADATA, COMP, SEND, RECV, COLL = 1, 4, 5, 6, 7
ALL_REDUCE, GATHER, ALL_TO_ALL = 0, 3, 6


def varint(value: int) -> bytes:
    head, tail = value & 0x7F, value >> 7
    return bytes([head | 0x80]) + varint(tail) if tail else bytes([head])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute_value(value: float | str | None) -> bytes:
    match value:
        case None:
            return b""
        case str():
            return field(29, value.encode())
        case float():
            return varint(3 << 3 | 1) + struct.pack("<d", value)
    return field(9, value % 2**64)


def node(
    id: int,
    kind: int,
    attributes: Mapping[str, int | float | str | None] | None = None,
    *,
    after: Sequence[int] = (),
    ctrl: Sequence[int] = (),
    us: int = 0,
    inputs: str = "",
) -> bytes:
    """A node as ASTRA-sim's generators write it: int64_val (9) and string_val (29), packed deps.

    Also double_val (3), and an attribute without a value.
    """
    message = field(1, id) + field(2, b"a name") + field(3, kind)
    message += field(4, b"".join(map(varint, ctrl))) + field(5, b"".join(map(varint, after)))
    message += field(7, us)
    if inputs:
        message += field(8, field(1, inputs.encode()))
    for name, value in (attributes or {}).items():
        message += field(10, field(1, name.encode()) + attribute_value(value))
    return varint(len(message)) + message


def write(folder: Path, *ranks: Sequence[bytes]) -> Path:
    metadata = field(1, b"0.0.4")
    for rank, nodes in enumerate(ranks):
        content = varint(len(metadata)) + metadata + b"".join(nodes)
        (folder / f"job.{rank}.et").write_bytes(content)
    return folder / "job"
