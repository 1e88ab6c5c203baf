"""InfiniBand's link and network layers: LRH, GRH, and the flow-control packet.

    LRH  8    VL 4 | LVer 4 | SL 4 | 0 2 | LNH 2 | DLID 16 | 0 5 | PktLen 11 | SLID 16
    GRH 40    IPVer TClass FlowLabel PayLen NxtHdr HopLmt SGID DGID, as an IPv6 header
    flow control 6    Op 4 | FCTBS 12 | VL 4 | FCCL 12 | LPCRC 16

(IBTA vol 1, 7.7, 8.3 and 7.9.4.) A packet is LRH, [GRH], BTH .. ICRC, VCRC. PktLen
counts four-byte words from the LRH to the ICRC. A GRH also follows Ethernet
directly, in RoCEv1.
"""
# ruff: noqa: RUF012 - a list is how scapy wants its fields

from __future__ import annotations

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteField,
    IP6Field,
    ShortField,
    XByteField,
    XShortField,
)

from emu.wire import crc
from emu.wire.layers.header import Header, TrailerField

LNH_NAMES = {0: "raw", 1: "raw IPv6", 2: "local", 3: "global"}
GRH_NEXT_HEADER_BTH = 0x1B
WORD = 4


class LRH(Header):
    """Local Route Header. PktLen and VCRC are computed unless given.

    >>> packet = LRH(slid=1, dlid=4) / BTH(opcode=Opcode.RC_ACKNOWLEDGE) / AETH(msn=1)
    """

    name = "LRH"
    size = 8
    fields_desc = [
        BitField("vl", 0, 4),
        BitField("lver", 0, 4),
        BitField("sl", 0, 4),
        BitField("reserved2", 0, 2),
        BitEnumField("lnh", 0, 2, LNH_NAMES),
        XShortField("dlid", 0),
        BitField("reserved5", 0, 5),
        BitField("pktlen", None, 11),
        XShortField("slid", 0),
        TrailerField("vcrc", None),
    ]

    @property
    def payload_bytes(self) -> int:
        """The number of bytes between LRH and VCRC, from PktLen."""
        return max(int(self.pktlen) * WORD - self.size, 0)

    def post_dissect(self, s: bytes) -> bytes:
        self.raw_packet_cache = None
        end = self.payload_bytes
        whole = len(s) >= end + crc.VCRC_BYTES
        self.fields["vcrc"] = s[end : end + crc.VCRC_BYTES] if whole else b""
        return s[:end] + s[end + crc.VCRC_BYTES :] if whole else s

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        return s[: self.payload_bytes], s[self.payload_bytes :]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.pktlen is None:
            words = -(-(self.size + len(pay)) // WORD)
            pkt = pkt[:4] + (self.reserved5 << 11 | words & 0x7FF).to_bytes(2, "big") + pkt[6:]
        return pkt + pay + (crc.vcrc(pkt + pay) if self.vcrc is None else self.vcrc)


class GRH(Header):
    """Global Route Header. PayLen is computed unless given.

    >>> packet = LRH() / GRH(sgid="fe80::a", dgid="fe80::b") / BTH() / b"hello"
    """

    name = "GRH"
    size = 40
    fields_desc = [
        BitField("ipver", 6, 4),
        BitField("tclass", 0, 8),
        BitField("flowlabel", 0, 20),
        ShortField("paylen", None),
        XByteField("nxthdr", GRH_NEXT_HEADER_BTH),
        ByteField("hoplmt", 64),
        IP6Field("sgid", "::"),
        IP6Field("dgid", "::"),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        if isinstance(self.underlayer, LRH):
            return s, b""  # PktLen has already set the end of the packet
        return s[: self.paylen], s[self.paylen :]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.paylen is None:
            pkt = pkt[:4] + len(pay).to_bytes(2, "big") + pkt[6:]
        return pkt + pay


class FlowControl(Header):
    """Flow-control packet: the credits of one virtual lane. LPCRC is computed unless given.

    >>> packet = FlowControl(vl=2, fctbs=0x123, fccl=0x456)
    """

    name = "FlowControl"
    size = 4
    fields_desc = [
        BitEnumField("op", 0, 4, {0: "normal", 1: "init"}),
        BitField("fctbs", 0, 12),
        BitField("vl", 0, 4),
        BitField("fccl", 0, 12),
        TrailerField("lpcrc", None),
    ]

    def post_dissect(self, s: bytes) -> bytes:
        self.raw_packet_cache = None
        whole = len(s) >= crc.LPCRC_BYTES
        self.fields["lpcrc"] = s[: crc.LPCRC_BYTES] if whole else b""
        return s[len(self.lpcrc) :]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        return b"", s

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        return pkt + (crc.lpcrc(pkt) if self.lpcrc is None else self.lpcrc) + pay
