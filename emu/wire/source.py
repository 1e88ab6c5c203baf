"""Reads a file in items (a header, a record, a block), and checks that each is complete."""

from __future__ import annotations

from typing import BinaryIO

_LARGEST_ITEM = 1 << 24
"""Longer than any frame or block of a valid file. A greater length is damage."""


class Damage(Exception):
    """The file's structure is damaged in the item that begins at the source's `start`."""


class Source:
    """Items of a seekable binary stream, one after another."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._offset = 0
        self.start = 0
        """Offset at which the current item begins."""

    def next_item(self, size: int) -> bytes | None:
        """The first `size` bytes of the next item, or None at the end of the file."""
        self.start = self._offset
        data = self._read(size)
        return self._whole(data, size) if data else None

    def rest_of_item(self, size: int) -> bytes:
        """The next `size` bytes of the current item."""
        if size > _LARGEST_ITEM:
            raise Damage(f"a length of {size} bytes cannot be")
        return self._whole(self._read(size), size)

    def peek(self, size: int) -> bytes:
        """The first bytes of the file. Only allowed before the first item."""
        data = self._stream.read(size)
        self._stream.seek(0)
        return data

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._offset += len(data)
        return data

    def _whole(self, data: bytes, size: int) -> bytes:
        if len(data) < size:
            raise Damage(f"the file ends {size - len(data)} bytes too early")
        return data
