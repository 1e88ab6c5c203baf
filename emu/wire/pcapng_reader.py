"""Reads pcapng files (draft-ietf-opsawg-pcapng): sections of blocks.

    | type 4 | length 4 | body | length 4 |

Every section has its own byte order and its own interfaces; an interface has its
own time resolution. Packets are in enhanced, simple (without a time) and obsolete
packet blocks. Blocks of other types are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from emu.wire.capture import Direction, Record
from emu.wire.source import Damage, Source
from emu.wire.unwrap import kind_of

SECTION_HEADER = bytes.fromhex("0a0d0d0a")

_BYTE_ORDERS = {bytes.fromhex("1a2b3c4d"): ">", bytes.fromhex("4d3c2b1a"): "<"}
_INTERFACE, _OBSOLETE_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_IF_NAME, _IF_TSRESOL, _IF_TSOFFSET, _EPB_FLAGS = 2, 9, 14, 2
_DIRECTION_MASK = 3
_MICROSECONDS = 6
_NS_PER_SECOND = 1_000_000_000


def read_pcapng(source: Source) -> Iterator[Record]:
    """The records as they are in the file, with ERF headers. Raises Damage."""
    section: _Section | None = None
    while head := source.next_item(8):
        if head[:4] == SECTION_HEADER:
            section = _next_section(source, head)
        elif section is None:
            raise Damage("no section header at the beginning")
        else:
            block_type, length = section.block_head.unpack(head)
            record = section.record(block_type, _body(source, section, length, already_read=8))
            if record is not None:
                yield record


def _next_section(source: Source, head: bytes) -> _Section:
    magic = source.rest_of_item(4)
    if magic not in _BYTE_ORDERS:
        raise Damage(f"a section's byte-order magic cannot be {magic.hex()}")
    section = _Section(_BYTE_ORDERS[magic])
    _, length = section.block_head.unpack(head)
    _body(source, section, length, already_read=12)
    return section


def _body(source: Source, section: _Section, length: int, *, already_read: int) -> bytes:
    """The rest of a block, without the length at its end."""
    if length % 4 or length < already_read + 4:
        raise Damage(f"a block cannot have {length} bytes")
    rest = source.rest_of_item(length - already_read)
    (again,) = section.word.unpack(rest[-4:])
    if again != length:
        raise Damage(
            f"a block gives its length as {length} bytes at its beginning and {again} at its end"
        )
    return rest[:-4]


@dataclass(frozen=True)
class _Interface:
    name: str
    linktype: int
    snaplen: int
    units_per_second: int
    offset_seconds: int

    def nanoseconds(self, high: int, low: int) -> int:
        units = high << 32 | low
        fraction = units * _NS_PER_SECOND // self.units_per_second
        return self.offset_seconds * _NS_PER_SECOND + fraction


class _Section:
    """A section's byte order, and its interfaces so far."""

    def __init__(self, order: str) -> None:
        self.block_head = Struct(order + "II")
        self.word = Struct(order + "I")
        self._enhanced = Struct(order + "IIIII")
        self._obsolete = Struct(order + "HHIIII")
        self._description = Struct(order + "HHI")
        self._option_head = Struct(order + "HH")
        self._signed_long = Struct(order + "q")
        self._interfaces: list[_Interface] = []

    def record(self, block_type: int, body: bytes) -> Record | None:
        """The packet in a block, or None. Remembers described interfaces. Raises Damage."""
        if block_type == _ENHANCED_PACKET:
            interface, high, low, stored, original = _fields(self._enhanced, body)
            return self._packet(body, self._enhanced.size, interface, high, low, stored, original)
        if block_type == _OBSOLETE_PACKET:
            interface, _, high, low, stored, original = _fields(self._obsolete, body)
            return self._packet(body, self._obsolete.size, interface, high, low, stored, original)
        if block_type == _SIMPLE_PACKET:
            (original,) = _fields(self.word, body)
            snaplen = self._interface(0).snaplen or original
            stored = min(original, snaplen)
            return self._packet(body, self.word.size, 0, 0, 0, stored, original)
        if block_type == _INTERFACE:
            self._interfaces.append(self._described(body))
        return None

    def _packet(
        self, body: bytes, offset: int, number: int, high: int, low: int, stored: int, original: int
    ) -> Record:
        interface = self._interface(number)
        end = offset + stored
        if end > len(body):
            raise Damage(f"{stored} bytes of packet in a block with room for {len(body) - offset}")
        return Record(
            time_ns=interface.nanoseconds(high, low),
            kind=kind_of(interface.linktype),
            linktype=interface.linktype,
            data=body[offset:end],
            original_length=original,
            interface=interface.name,
            direction=self._direction(body[end + -stored % 4 :]),
        )

    def _interface(self, number: int) -> _Interface:
        if number >= len(self._interfaces):
            raise Damage(f"interface {number} was not described before")
        return self._interfaces[number]

    def _described(self, body: bytes) -> _Interface:
        linktype, _, snaplen = _fields(self._description, body)
        options = self._options(body[self._description.size :])
        name = options.get(_IF_NAME, b"").decode(errors="replace")
        offset = options.get(_IF_TSOFFSET, b"")
        return _Interface(
            name=name or f"interface {len(self._interfaces)}",
            linktype=linktype,
            snaplen=snaplen,
            units_per_second=_units_per_second(options.get(_IF_TSRESOL, b"")),
            offset_seconds=self._signed_long.unpack(offset)[0] if len(offset) == 8 else 0,
        )

    def _direction(self, options: bytes) -> Direction:
        flags = self._options(options).get(_EPB_FLAGS, b"") if options else b""
        if len(flags) != self.word.size:
            return Direction.UNKNOWN
        bits = self.word.unpack(flags)[0] & _DIRECTION_MASK
        return Direction(bits) if bits != _DIRECTION_MASK else Direction.UNKNOWN

    def _options(self, data: bytes) -> dict[int, bytes]:
        """Code -> value, for all complete options."""
        options: dict[int, bytes] = {}
        offset = 0
        while offset + self._option_head.size <= len(data):
            code, length = self._option_head.unpack_from(data, offset)
            offset += self._option_head.size
            if code == 0:
                break
            options[code] = data[offset : offset + length]
            offset += length + -length % 4
        return options


def _fields(layout: Struct, body: bytes) -> tuple[int, ...]:
    if len(body) < layout.size:
        raise Damage(f"a block's body has {len(body)} bytes, {layout.size} are the least")
    return layout.unpack_from(body)


def _units_per_second(resolution: bytes) -> int:
    """Time units per second from if_tsresol: a power of ten, or of two if its top bit is set."""
    exponent = resolution[0] if resolution else _MICROSECONDS
    return 1 << (exponent & 0x7F) if exponent & 0x80 else int(10**exponent)
