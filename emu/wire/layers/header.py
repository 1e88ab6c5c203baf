"""What our scapy layers have in common: a known size, and trailers.

InfiniBand puts things behind the payload: pad, ICRC, VCRC. scapy's way of
dissecting is front to back, so a layer with a trailer declares it as a
`TrailerField`, which takes no part in the header, cuts it off in
`post_dissect` and puts it back in `post_build`.

A trailer's value is the bytes as they are on the wire:

    None    computed when the packet is built (so is a layer made by hand)
    b""     absent: the frame was cut short before it
    bytes   as given, or as captured

To have one computed again after editing a dissected packet, delete it, as with
any scapy checksum: `del packet[BTH].icrc`.
"""

from __future__ import annotations

from typing import Any

from scapy.fields import XStrField
from scapy.packet import Packet

from emu.errors import RemoteProtocolError


class TrailerField(XStrField):
    """Bytes behind the payload, kept by the layer they belong to."""

    def addfield(self, pkt: Packet | None, s: bytes, val: bytes | None) -> bytes:
        return s

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, Any]:
        return s, None


class Header(Packet):
    """A header of fixed size. One that is cut short is left to scapy's Raw by the layer below it.

    Dissected on its own, it raises RemoteProtocolError.
    """

    size = 0
    """Bytes of the header itself, without its trailers."""

    def pre_dissect(self, s: bytes) -> bytes:
        if len(s) < self.size:
            raise RemoteProtocolError(f"{self.name} has {self.size} bytes, only {len(s)} are here")
        return s
