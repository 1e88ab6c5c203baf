"""Reads captures of any origin: pcap, pcapng and bare ERF files.

    with open_capture(path) as capture:
        for record in capture:
            ...
    if capture.damage:
        ...

A file that is not a capture raises CaptureError. A file with damage further in (cut
off while it was written, an impossible length) yields the records before the damage
and then stops; `damage` describes place and cause.

    pcap      either byte order, micro- or nanoseconds
    pcapng    any number of sections, byte orders, interfaces, time resolutions
    ERF       link type 197 in the two above, or bare records
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emu.errors import UsageError
from emu.regular import open_regular
from emu.wire import erf
from emu.wire.capture import Kind, LinkType, Record
from emu.wire.pcap_reader import PCAP_MAGICS, read_pcap
from emu.wire.pcapng_reader import SECTION_HEADER, read_pcapng
from emu.wire.source import Damage, Source
from emu.wire.unwrap import unwrap

_ERF_TYPES = range(1, erf.ErfType.PAD + 1)
_ERF_RESERVED_FLAGS = 0xC0
_ERF_RECORDS_TO_TRUST = 3
_GZIP = b"\x1f\x8b"
_ENOUGH_TO_TELL = 1 << 16


class CaptureError(UsageError):
    """A file that is not a readable capture."""


class Capture:
    """The records of a file in their order, without ERF headers. It can be read once."""

    def __init__(self, source: Source, records: Iterator[Record]) -> None:
        self._source = source
        self._records = records
        self.damage: str | None = None
        """The place and cause of damage before the file's end; None without damage."""

    def __iter__(self) -> Iterator[Record]:
        try:
            for record in self._records:
                frame = unwrap(record)
                if frame is not None:
                    yield frame
        except Damage as damage:
            self.damage = f"offset {self._source.start}: {damage}"


@contextmanager
def open_capture(path: Path) -> Iterator[Capture]:
    """Opens a capture and detects its format. Raises CaptureError."""
    try:
        stream = open_regular(path)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be opened: {error.strerror}") from error
    with stream:
        source = Source(stream)
        try:
            records = _records(source)
        except OSError as error:
            raise CaptureError(f"{path}: cannot be read: {error.strerror}") from error
        except Damage as damage:
            raise CaptureError(f"{path}: {damage}") from damage
        yield Capture(source, records)


def _records(source: Source) -> Iterator[Record]:
    beginning = source.peek(_ENOUGH_TO_TELL)
    if not beginning:
        raise Damage("the file is empty")
    if beginning[:4] in PCAP_MAGICS:
        return read_pcap(source)
    if beginning[:4] == SECTION_HEADER:
        return read_pcapng(source)
    if beginning[:2] == _GZIP:
        raise Damage("compressed with gzip; unpack it first with gunzip")
    if _looks_like_erf(beginning):
        return _read_erf(source)
    raise Damage(f"begins with {beginning[:4].hex()}: neither pcap, pcapng nor ERF")


def _looks_like_erf(beginning: bytes) -> bool:
    """Whether the first few records look like ERF records and the first is complete. ERF has no
    magic number."""
    offset = 0
    for _ in range(_ERF_RECORDS_TO_TRUST):
        if len(beginning) < offset + erf.HEADER.size:
            break
        _, flagged_type, flags, rlen, _, _ = erf.HEADER.unpack_from(beginning, offset)
        if flagged_type & erf.TYPE_MASK not in _ERF_TYPES or flags & _ERF_RESERVED_FLAGS:
            return False
        if rlen < erf.HEADER.size or (offset == 0 and rlen > len(beginning)):
            return False
        offset += rlen
    return offset > 0


def _read_erf(source: Source) -> Iterator[Record]:
    while head := source.next_item(erf.HEADER.size):
        timestamp, _, flags, rlen, _, wlen = erf.HEADER.unpack(head)
        if rlen < erf.HEADER.size:
            raise Damage(f"a record cannot have {rlen} bytes")
        yield Record(
            time_ns=erf.to_nanoseconds(timestamp),
            kind=Kind.OTHER,
            linktype=LinkType.ERF,
            data=head + source.rest_of_item(rlen - erf.HEADER.size),
            original_length=erf.HEADER.size + wlen,
            interface=f"port {flags & 3}",
        )
