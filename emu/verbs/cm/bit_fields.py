"""Messages as dataclasses whose fields say where their bits are.

    local_id: int = at(0, 32)              the first 4 bytes
    sl: int = at(94, 4)                    the high 4 bits of byte 94
    srq: bool = at(51, 1, bit=4, kind=FLAG)

Bit 0 is the highest of a byte, as in the specification's pictures. Bits that no field has are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, fields
from typing import Any, ClassVar, NamedTuple, Self


class Kind(NamedTuple):
    """How a field's value is written as a number, and read from it."""

    write: Callable[[Any], int]
    read: Callable[[int], Any]


NUMBER = Kind(int, int)
FLAG = Kind(int, bool)


def octets(count: int) -> Kind:
    """Bytes, of which missing ones are 0."""
    return Kind(
        lambda value: int.from_bytes(value.ljust(count, b"\0")),
        lambda number: number.to_bytes(count),
    )


class Place(NamedTuple):
    """The bits of a number in a message, from `first`, counted from the message's begin."""

    first: int
    bits: int

    def shift(self, message_bytes: int) -> int:
        return 8 * message_bytes - self.first - self.bits


def place(offset: int, bits: int, bit: int = 0) -> Place:
    """`bits` bits from bit `bit` of the byte at `offset`."""
    return Place(8 * offset + bit, bits)


def at(offset: int, bits: int, *, bit: int = 0, kind: Kind = NUMBER, **options: Any) -> Any:
    """A field there. `options` are those of `dataclasses.field`."""
    return field(metadata={"place": place(offset, bits, bit), "kind": kind}, **options)


class BitFields:
    """A message of such fields, and private data behind them. Subclasses are dataclasses."""

    private_at: ClassVar[int]
    """The length of the fields in bytes."""
    private_data: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Raises what the kinds of fields raise for numbers without a meaning."""
        number = int.from_bytes(data[: cls.private_at])
        values: dict[str, Any] = {"private_data": data[cls.private_at :]}
        for name, where, kind in cls._placed():
            bits = number >> where.shift(cls.private_at) & (1 << where.bits) - 1
            values[name] = kind.read(bits)
        return cls(**values)

    def build(self) -> bytes:
        number = 0
        for where, value in [*self._written(), *self.implied()]:
            number |= value << where.shift(self.private_at)
        return number.to_bytes(self.private_at) + self.private_data

    def implied(self) -> Iterator[tuple[Place, int]]:
        """Further bits that follow from the fields."""
        yield from ()

    def _written(self) -> Iterator[tuple[Place, int]]:
        for name, where, kind in self._placed():
            yield where, kind.write(getattr(self, name))

    @classmethod
    def _placed(cls) -> Iterator[tuple[str, Place, Kind]]:
        for one in fields(cls):  # type: ignore[arg-type]
            if "place" in one.metadata:
                yield one.name, one.metadata["place"], one.metadata["kind"]
