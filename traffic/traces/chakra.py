"""Chakra execution traces (MLCommons), as ASTRA-sim reads them: a file for each rank.

    job.0.et, job.1.et, ...      GlobalMetadata, Node, Node, ...

Each file is a sequence of protobuf messages, with the length before each. These fields of a node
are read, by their numbers in the schema:

    id (1), type (3), ctrl_deps (4), data_deps (5), duration_micros (7), inputs (8), attr (10)

    COMM_SEND_NODE, COMM_RECV_NODE    attributes comm_src, comm_dst, comm_tag, comm_size
    COMM_COLL_NODE                    comm_type, comm_size, pg_name: the process group, by default
                                      all ranks; a broadcast comes from its first rank
    METADATA_NODE                     inputs may list the ranks of process groups
    all others                        work that takes duration_micros; without that, work of num_ops
                                      floating-point operations at a given speed
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, proto
from google.protobuf.message import DecodeError

from emu.regular import read_regular
from traffic.job import Kind
from traffic.traces.groups import Groups, group_of, groups_in
from traffic.traces.trace import LONGEST_BYTES, Does, Step, Trace, TraceError, whole_number

METADATA, COMM_SEND, COMM_RECV, COMM_COLL = 1, 5, 6, 7
"""Node.type"""
COLLECTIVES = {
    0: Kind.ALL_REDUCE,
    2: Kind.ALL_GATHER,
    5: Kind.BROADCAST,
    6: Kind.ALL_TO_ALL,
    7: Kind.REDUCE_SCATTER,
}
"""comm_type"""
NS_PER_US = 1000
OPERATIONS_PER_NS = 1000
"""The speed of a GPU with 1 TFLOPS."""

Attributes = dict[str, Any]


def read_chakra(
    prefix: Path, groups: Groups = MappingProxyType({}), tflops: int | None = None
) -> Trace:
    """The trace in `<prefix>.0.et`, `<prefix>.1.et` and so on. Raises TraceError, OSError.

    The groups in a rank's own file precede `groups`. `tflops` is the speed of a GPU in 10^12
    operations per second, for work that has a number of operations and no duration.
    """
    files = _files(prefix)
    steps: list[Step] = []
    for rank, file in enumerate(files):
        steps += _steps_of(file, _Place(rank, len(files), groups, tflops), first=len(steps))
    if not steps:
        raise TraceError(f"{prefix.name}.*.et", "have no nodes; give a rank something to do")
    return Trace(len(files), tuple(steps))


@dataclass(frozen=True)
class _Place:
    """A rank among the others."""

    rank: int
    ranks: int
    groups: Groups
    tflops: int | None


def _files(prefix: Path) -> list[Path]:
    ranks = {}
    for file in prefix.parent.glob("*.et"):
        match = re.fullmatch(re.escape(prefix.name) + r"\.(\d+)\.et", file.name)
        if match:
            ranks[int(match[1])] = file
    missing = next(rank for rank in range(len(ranks) + 1) if rank not in ranks)
    if missing < len(ranks) or not ranks:
        raise TraceError(
            f"{prefix.name}.{missing}.et", "is missing; each rank has a file, beginning with rank 0"
        )
    return [ranks[rank] for rank in range(len(ranks))]


def _steps_of(file: Path, place: _Place, first: int) -> list[Step]:
    """A rank's nodes. `first` is the number of its first node among the steps of all ranks."""
    nodes = list(_nodes(file))
    number_of: dict[int, int] = {}
    for number, node in enumerate(nodes, start=first):
        if number_of.setdefault(node.id, number) != number:
            raise TraceError(f"{file.name}: node {node.id}", "occurs twice; give one another id")
    groups = dict(place.groups)
    for node in nodes:
        if node.type == METADATA:
            groups |= groups_in(node.inputs.values, place.ranks, f"{file.name}: node {node.id}")
    place = replace(place, groups=groups)
    return [_step(file, node, place, number_of) for node in nodes]


def _nodes(file: Path) -> Iterator[Any]:
    metadata, node = _messages()
    stream = BytesIO(read_regular(file, LONGEST_BYTES))
    if _next(metadata, stream, file.name) is None:
        raise TraceError(file.name, "is empty; write the trace again")
    while (found := _next(node, stream, file.name)) is not None:
        yield found


def _next(kind: Any, stream: BytesIO, name: str) -> Any:
    """The next message; None at the end of the file."""
    start = stream.tell()
    try:
        return proto.parse_length_prefixed(kind, stream)
    except (DecodeError, ValueError, EOFError):
        raise TraceError(
            name,
            f"the message at byte {start} is truncated, or the file is not an execution "
            "trace of Chakra; write the trace again",
        ) from None


def _step(file: Path, node: Any, place: _Place, number_of: dict[int, int]) -> Step:
    where = f"{file.name}: node {node.id}"
    attributes = {attr.name: _value(attr) for attr in node.attr}
    unknown = [id for id in (*node.data_deps, *node.ctrl_deps) if id not in number_of]
    if unknown:
        raise TraceError(where, f"waits for node {unknown[0]}, which is not in the file")
    after = tuple(number_of[id] for id in (*node.data_deps, *node.ctrl_deps))
    if node.type in (COMM_SEND, COMM_RECV):
        return _message(where, node.type == COMM_SEND, place, attributes, after)
    if node.type == COMM_COLL:
        return _collective(where, place, attributes, after)
    lasts_ns = node.duration_micros * NS_PER_US
    if not lasts_ns and attributes.get("num_ops"):
        lasts_ns = _work_ns(where, _wanted(where, attributes, "num_ops"), place.tflops)
    return Step(where, place.rank, Does.CALC, lasts_ns=lasts_ns, after=after)


def _work_ns(where: str, operations: int, tflops: int | None) -> int:
    if tflops is None:
        raise TraceError(
            where,
            "has num_ops and no duration_micros; say how many 10^12 operations a GPU does in a "
            "second, e.g. tflops: 400",
        )
    return round(operations / (tflops * OPERATIONS_PER_NS))


def _message(
    where: str, sends: bool, place: _Place, attributes: Attributes, after: tuple[int, ...]
) -> Step:
    rank, ranks = place.rank, place.ranks
    peer = _wanted(where, attributes, "comm_dst" if sends else "comm_src")
    if peer == rank or not 0 <= peer < ranks:
        raise TraceError(where, f"rank {peer} is not one of the other {ranks - 1}; correct it")
    return Step(
        where,
        rank,
        Does.SEND if sends else Does.RECV,
        peer=peer,
        tag=_wanted(where, {"comm_tag": 0, **attributes}, "comm_tag"),
        size_bytes=_wanted(where, attributes, "comm_size"),
        after=after,
    )


def _collective(where: str, place: _Place, attributes: Attributes, after: tuple[int, ...]) -> Step:
    number = _wanted(where, attributes, "comm_type")
    if number not in COLLECTIVES:
        known = ", ".join(f"{number} ({kind})" for number, kind in COLLECTIVES.items())
        raise TraceError(where, f"comm_type {number} is not known here; known are {known}")
    size_bytes = _wanted(where, attributes, "comm_size")
    name = str(attributes.get("pg_name", ""))
    return Step(
        where,
        place.rank,
        Does.COLLECTIVE,
        size_bytes=size_bytes,
        collective=COLLECTIVES[number],
        group=group_of(name, place.groups, place.rank, place.ranks, where),
        after=after,
    )


def _wanted(where: str, attributes: Attributes, name: str) -> int:
    if name not in attributes:
        raise TraceError(where, f"has no attribute {name}; add it")
    try:
        return whole_number(attributes[name])
    except ValueError:
        raise TraceError(
            where, f"attribute {name} is {attributes[name]!r}; write a whole number"
        ) from None


def _value(attribute: Any) -> Any:
    which = attribute.WhichOneof("value")
    return None if which is None else getattr(attribute, which)


@cache
def _messages() -> tuple[Any, Any]:
    """The classes of GlobalMetadata and Node, with only the fields that are read here."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="chakra.proto", package="chakra", syntax="proto3"
    )
    metadata = file.message_type.add(name="GlobalMetadata")
    metadata.field.add(name="version", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    attribute = file.message_type.add(name="AttributeProto")
    attribute.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    attribute.oneof_decl.add(name="value")
    for number, kind in _VALUES.items():
        attribute.field.add(
            name=f"value_{number}",
            number=number,
            type=getattr(field, f"TYPE_{kind}"),
            label=field.LABEL_OPTIONAL,
            oneof_index=0,
        )
    inputs = file.message_type.add(name="IOInfo")
    inputs.field.add(name="values", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    node = file.message_type.add(name="Node")
    for name, (number, kind, label) in _NODE.items():
        node.field.add(
            name=name,
            number=number,
            type=getattr(field, f"TYPE_{kind}", field.TYPE_MESSAGE),
            label=getattr(field, f"LABEL_{label}"),
            type_name=f".chakra.{kind}" if kind in ("IOInfo", "AttributeProto") else None,
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"chakra.{name}") for name in ("GlobalMetadata", "Node"))
    return tuple(map(message_factory.GetMessageClass, found))


_VALUES = {
    3: "DOUBLE",
    5: "FLOAT",
    7: "INT32",
    9: "INT64",
    11: "UINT32",
    13: "UINT64",
    15: "SINT32",
    17: "SINT64",
    19: "FIXED32",
    21: "FIXED64",
    23: "SFIXED32",
    25: "SFIXED64",
    27: "BOOL",
    29: "STRING",
}
"""The fields of AttributeProto's value that hold a single value, and their types."""
_NODE = {
    "id": (1, "UINT64", "OPTIONAL"),
    "type": (3, "INT32", "OPTIONAL"),
    "ctrl_deps": (4, "UINT64", "REPEATED"),
    "data_deps": (5, "UINT64", "REPEATED"),
    "duration_micros": (7, "UINT64", "OPTIONAL"),
    "inputs": (8, "IOInfo", "OPTIONAL"),
    "attr": (10, "AttributeProto", "REPEATED"),
}
