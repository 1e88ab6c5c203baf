"""The base of this package's scapy layers: a known size, and trailers.

InfiniBand has fields behind the payload: pad, ICRC, VCRC. scapy dissects from
front to back. A layer with a trailer therefore declares it as a `TrailerField`,
which takes no part in the header, cuts it off in `post_dissect`, and puts it
back in `post_build`.

A trailer's value is its bytes on the wire:

    None    computed when the packet is built (the default of layers made by hand)
    b""     absent, because the frame was cut short before it
    bytes   as given, or as captured

To compute a trailer again after editing a dissected packet, delete it, as with
any scapy checksum: `del packet[BTH].icrc`.
"""

from __future__ import annotations

from typing import Any

from scapy.fields import XStrField
from scapy.packet import Packet

from emu.errors import RemoteProtocolError


class TrailerField(XStrField):
    """Bytes behind the payload, which their layer keeps."""

    def addfield(self, pkt: Packet | None, s: bytes, val: bytes | None) -> bytes:
        return s

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, Any]:
        return s, None


class Header(Packet):
    """A header of fixed size. The layer below it turns a header that is cut short into scapy's Raw.

    Dissected on its own, such a header raises RemoteProtocolError.
    """

    size = 0
    """Bytes of the header itself, without its trailers."""

    def pre_dissect(self, s: bytes) -> bytes:
        if len(s) < self.size:
            raise RemoteProtocolError(f"{self.name} has {self.size} bytes, only {len(s)} are here")
        return s
