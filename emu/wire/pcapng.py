"""Writes pcapng files (draft-ietf-opsawg-pcapng), the format of all captures of the emulator.

    section header · interface description for each interface · enhanced packet for each frame
                 · interface statistics, where frames may be missing

Time stamps are nanoseconds. Everything is little endian.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import BinaryIO

from emu.wire.capture import Direction, Interface

_SECTION_HEADER, _INTERFACE, _STATISTICS, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 5, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_UNKNOWN_LENGTH = -1
_NANOSECONDS = b"\x09"

_END_OF_OPTIONS, _COMMENT = 0, 1
_SHB_USERAPPL = 4
_IF_NAME, _IF_DESCRIPTION, _IF_SPEED, _IF_TSRESOL = 2, 3, 8, 9
_EPB_FLAGS, _EPB_PACKETID = 2, 5
_ISB_IFRECV, _ISB_IFDROP = 4, 5

_WORD = Struct("<I")
_LONG = Struct("<Q")
_BLOCK_HEAD = Struct("<II")
_OPTION_HEAD = Struct("<HH")
_SECTION_BODY = Struct("<IHHq")
_INTERFACE_BODY = Struct("<HHI")
_PACKET_BODY = Struct("<IIIII")
_STATISTICS_BODY = Struct("<III")


class PcapngWriter:
    """Writes one section to a binary stream, which the caller closes."""

    def __init__(
        self, stream: BinaryIO, interfaces: Sequence[Interface], *, comment: str = ""
    ) -> None:
        self._stream = stream
        self._write(_SECTION_HEADER, _section(comment))
        for interface in interfaces:
            self._write(_INTERFACE, _interface(interface))

    def write(
        self,
        data: bytes,
        *,
        time_ns: int,
        interface: int = 0,
        original_length: int | None = None,
        direction: Direction = Direction.UNKNOWN,
        packet_id: int | None = None,
        comment: str = "",
    ) -> None:
        """Adds a frame. `packet_id` is equal for the same frame at several interfaces."""
        original = len(data) if original_length is None else original_length
        high, low = time_ns >> 32, time_ns & 0xFFFFFFFF
        options = {}
        if direction is not Direction.UNKNOWN:
            options[_EPB_FLAGS] = _WORD.pack(direction.value)
        if packet_id is not None:
            options[_EPB_PACKETID] = _LONG.pack(packet_id)
        if comment:
            options[_COMMENT] = comment.encode()
        head = _PACKET_BODY.pack(interface, high, low, len(data), original)
        self._write(_ENHANCED_PACKET, head + _padded(data) + _options(options))

    def statistics(self, *, time_ns: int, received: int, missed: int, interface: int = 0) -> None:
        """Adds the number of frames at an interface, and how many of them are missing."""
        counts = {_ISB_IFRECV: _LONG.pack(received), _ISB_IFDROP: _LONG.pack(missed)}
        head = _STATISTICS_BODY.pack(interface, time_ns >> 32, time_ns & 0xFFFFFFFF)
        self._write(_STATISTICS, head + _options(counts))

    def _write(self, block_type: int, body: bytes) -> None:
        length = _BLOCK_HEAD.size + len(body) + _WORD.size
        self._stream.write(_BLOCK_HEAD.pack(block_type, length) + body + _WORD.pack(length))


def _section(comment: str) -> bytes:
    options = {_SHB_USERAPPL: b"emu"}
    if comment:
        options[_COMMENT] = comment.encode()
    return _SECTION_BODY.pack(_BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH) + _options(options)


def _interface(interface: Interface) -> bytes:
    options = {_IF_NAME: interface.name.encode(), _IF_TSRESOL: _NANOSECONDS}
    if interface.description:
        options[_IF_DESCRIPTION] = interface.description.encode()
    if interface.speed_bps:
        options[_IF_SPEED] = _LONG.pack(interface.speed_bps)
    no_limit = 0
    return _INTERFACE_BODY.pack(interface.linktype, 0, no_limit) + _options(options)


def _options(values: dict[int, bytes]) -> bytes:
    if not values:
        return b""
    listed = b"".join(
        _OPTION_HEAD.pack(code, len(value)) + _padded(value) for code, value in values.items()
    )
    return listed + _OPTION_HEAD.pack(_END_OF_OPTIONS, 0)


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)
