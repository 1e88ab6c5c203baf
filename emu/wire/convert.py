"""Turns the core's raw capture file into files that Wireshark reads.

The core writes what its taps see with as little work as can be, a record each:

    int64   time_ps                      emulated picoseconds
    uint64  packet_id                    the same packet at several taps
    uint32  port_index
    uint32  length                       on the wire
    uint32  stored                       bytes that follow
    uint8   kind                         0 Ethernet, 1 InfiniBand LRH..VCRC, 2 flow-control packet
    uint8   direction                    1 into the port, 2 out of it
    uint16  zero
    stored bytes, padded to a multiple of 8                             little endian throughout

Ethernet becomes pcapng, InfiniBand becomes ERF records (see `erf.py`). The file is
read as a stream. A last record that is not whole, of a core that was killed, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from struct import Struct

from emu.errors import FabricError
from emu.units import PS_PER_NS, format_rate
from emu.wire import erf
from emu.wire.capture import Direction, Interface, LinkType
from emu.wire.pcapng import PcapngWriter
from emu.wire.source import Damage, Source

RAW_RECORD = Struct("<qQIIIBBH")
RAW_ALIGNMENT = 8


class RawKind(IntEnum):
    """What a raw record holds."""

    ETHERNET = 0
    IB = 1
    IB_LINK = 2


@dataclass(frozen=True)
class RawRecord:
    """A frame as a tap of the core saw it."""

    time_ps: int
    packet_id: int
    port_index: int
    length: int
    kind: RawKind
    direction: Direction
    data: bytes

    @property
    def linktype(self) -> LinkType:
        return LinkType.ETHERNET if self.kind is RawKind.ETHERNET else LinkType.ERF


def convert(
    raw: Path, out_dir: Path, ports: Mapping[int, str], rates: Mapping[str, int]
) -> dict[str, Path]:
    """Writes one file for each captured port: port name -> file.

    `ports` maps the core's port index to names like `leaf1:h1`, `rates` those to bits/s. Files are
    named `leaf1-h1.pcapng` or, for InfiniBand, `leaf1-h1.erf`; a port that saw nothing has an empty
    one. Raises FabricError when `raw` is no raw capture of one fabric.
    """
    linktype = _linktype(raw)
    files = {name: out_dir / _file_name(name, linktype) for name in ports.values()}
    with ExitStack() as open_files:
        writers: dict[str, PcapngWriter] = {}
        for name, path in files.items():
            stream = open_files.enter_context(path.open("wb"))
            writers[name] = PcapngWriter(stream, [_interface(name, linktype, rates)])
        for name, record in _records_of(raw, ports, linktype):
            _write(writers[name], record, interface=0)
    return files


def convert_together(
    raw: Path, out_file: Path, ports: Mapping[int, str], rates: Mapping[str, int]
) -> None:
    """Writes one file, an interface for each port in the order of `ports`. Raises FabricError."""
    linktype = _linktype(raw)
    interface = {name: number for number, name in enumerate(ports.values())}
    with out_file.open("wb") as stream:
        writer = PcapngWriter(stream, [_interface(name, linktype, rates) for name in interface])
        for name, record in _records_of(raw, ports, linktype):
            _write(writer, record, interface=interface[name])


def read_raw(raw: Path) -> Iterator[RawRecord]:
    """The whole records of a raw capture file. Raises FabricError."""
    with raw.open("rb") as stream:
        source = Source(stream)
        while True:
            try:
                record = _next_record(source)
            except Damage:
                return
            except ValueError as error:
                raise FabricError(
                    f"{raw}: offset {source.start}: no raw capture record: {error}"
                ) from error
            if record is None:
                return
            yield record


def _next_record(source: Source) -> RawRecord | None:
    """Raises Damage when the file ends within the record, ValueError when its fields cannot be."""
    head = source.next_item(RAW_RECORD.size)
    if head is None:
        return None
    time_ps, packet_id, port_index, length, stored, kind, direction, _ = RAW_RECORD.unpack(head)
    if time_ps < 0:
        raise ValueError(f"time {time_ps} ps is before the start")
    data = source.rest_of_item(stored + -stored % RAW_ALIGNMENT)[:stored]
    return RawRecord(
        time_ps, packet_id, port_index, length, RawKind(kind), Direction(direction), data
    )


def _linktype(raw: Path) -> LinkType:
    """That of the first record: a fabric is Ethernet or InfiniBand throughout."""
    return next((record.linktype for record in read_raw(raw)), LinkType.ETHERNET)


def _records_of(
    raw: Path, ports: Mapping[int, str], linktype: LinkType
) -> Iterator[tuple[str, RawRecord]]:
    """The records, each with its port's name."""
    for record in read_raw(raw):
        if record.port_index not in ports:
            raise FabricError(f"{raw}: a record of port {record.port_index}, which is not captured")
        name = ports[record.port_index]
        if record.linktype is not linktype:
            raise FabricError(f"{raw}: both Ethernet and InfiniBand, the latest at {name}")
        yield name, record


def _write(writer: PcapngWriter, record: RawRecord, *, interface: int) -> None:
    time_ns = record.time_ps // PS_PER_NS
    data, length = record.data, record.length
    if record.kind is RawKind.IB:
        data = erf.packet_record(record.data, time_ns=time_ns, original_length=record.length)
        length = erf.HEADER.size + record.length
    elif record.kind is RawKind.IB_LINK:
        data = erf.flow_control_record(record.data, time_ns=time_ns)
        length = len(data)
    writer.write(
        data,
        time_ns=time_ns,
        interface=interface,
        original_length=length,
        direction=record.direction,
        packet_id=record.packet_id,
    )


def _interface(name: str, linktype: LinkType, rates: Mapping[str, int]) -> Interface:
    rate_bps = rates.get(name, 0)
    description = f"{name}, {format_rate(rate_bps)}, emulated time" if rate_bps else name
    return Interface(name, linktype, description=description, speed_bps=rate_bps)


def _file_name(port_name: str, linktype: LinkType) -> str:
    """`leaf1:spine1#2` -> `leaf1-spine1-2.pcapng`."""
    suffix = ".pcapng" if linktype is LinkType.ETHERNET else ".erf"
    return port_name.replace(":", "-").replace("#", "-") + suffix
