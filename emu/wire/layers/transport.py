"""InfiniBand's transport layer: BTH and the extension headers (IBTA vol 1, 9.2 and 9.3).

BTH, 12 bytes, the header that every IB and RoCE packet carries:

     0        8 9 10  12      16               32
    | opcode   |SE|M|Pad|TVer |     P_Key      |
    |FECN|BECN|resv6 |        dest_qp          |
    |AckReq|  resv7  |          psn            |

`emu.wire.opcodes` lists the extension headers that follow. A header that is cut
short, and everything after the last header, is Raw. The pad and the ICRC behind
the payload belong to the BTH.

A BTH made by hand computes its pad count, its pad and its ICRC unless they are given.
The ICRC covers headers below the BTH. Without any of them it is four zeros.

    IP(dst="10.0.0.1") / UDP() / BTH(opcode=Opcode.RC_ACKNOWLEDGE, dest_qp=17) / AETH(msn=1)
    LRH(slid=1, dlid=2) / BTH(opcode=Opcode.RC_SEND_ONLY, dest_qp=17, psn=1) / b"hello"
"""
# ruff: noqa: RUF012 - a list is how scapy wants its fields

from __future__ import annotations

from scapy.fields import (
    BitField,
    ByteEnumField,
    IntField,
    StrFixedLenField,
    XBitField,
    XByteField,
    XIntField,
    XLongField,
    XShortField,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet, Raw

from emu.wire import crc
from emu.wire.layers.header import Header, TrailerField
from emu.wire.layers.ipoib import IPoIB, is_ipoib
from emu.wire.layers.link import GRH, LRH, WORD
from emu.wire.opcodes import EXTENSIONS, OPCODE_NAMES, Extension, Opcode

UDP_BYTES = 8


class BTH(Header):
    """Base Transport Header, with pad and ICRC."""

    name = "BTH"
    size = 12
    fields_desc = [
        ByteEnumField("opcode", Opcode.RC_SEND_ONLY, OPCODE_NAMES),
        BitField("se", 0, 1),
        BitField("m", 1, 1),
        BitField("pad_count", None, 2),
        BitField("tver", 0, 4),
        XShortField("p_key", 0xFFFF),
        BitField("fecn", 0, 1),
        BitField("becn", 0, 1),
        BitField("resv6", 0, 6),
        XBitField("dest_qp", 0, 24),
        BitField("ack_req", 0, 1),
        BitField("resv7", 0, 7),
        BitField("psn", 0, 24),
        TrailerField("pad", None),
        TrailerField("icrc", None),
    ]

    def post_dissect(self, s: bytes) -> bytes:
        self.raw_packet_cache = None
        trailer = self.pad_count + crc.ICRC_BYTES
        if len(s) < max(trailer, self._declared_bytes()):
            self.fields["pad"] = self.fields["icrc"] = b""
            return s
        end = len(s) - trailer
        self.fields["pad"] = s[end : -crc.ICRC_BYTES]
        self.fields["icrc"] = s[-crc.ICRC_BYTES :]
        return s[:end]

    def _declared_bytes(self) -> int:
        """The number of bytes behind this header that the layer below declares; 0 if it declares
        none."""
        below = self.underlayer
        if isinstance(below, UDP):
            return int(below.len or 0) - UDP_BYTES - self.size
        if isinstance(below, GRH):
            return int(below.paylen) - self.size
        if isinstance(below, LRH):
            return below.payload_bytes - self.size
        return 0

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _layer_after(self)

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        pad_count = -len(pay) % WORD if self.pad_count is None else self.pad_count
        pkt = pkt[:1] + bytes([pkt[1] & 0xCF | pad_count << 4]) + pkt[2:]
        covered = pkt + pay + (bytes(pad_count) if self.pad is None else self.pad)
        return covered + (_icrc_below(self, covered) if self.icrc is None else self.icrc)


class _ExtensionHeader(Header):
    """A header between BTH and payload; the BTH's opcode says which comes next."""

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _layer_after(self)


class RETH(_ExtensionHeader):
    """RDMA Extended Transport Header. `dma_len` is the whole message's length in bytes."""

    name = "RETH"
    size = 16
    fields_desc = [XLongField("va", 0), XIntField("r_key", 0), IntField("dma_len", 0)]


class AtomicETH(_ExtensionHeader):
    """Operands of an atomic: FetchAdd adds `swap_add`; CmpSwap stores it if it finds `compare`."""

    name = "AtomicETH"
    size = 28
    fields_desc = [
        XLongField("va", 0),
        XIntField("r_key", 0),
        XLongField("swap_add", 0),
        XLongField("compare", 0),
    ]


class AETH(_ExtensionHeader):
    """ACK Extended Transport Header. Syndrome 0x1F is a plain ACK, 0x60 a NAK for a lost PSN."""

    name = "AETH"
    size = 4
    fields_desc = [XByteField("syndrome", 0x1F), BitField("msn", 0, 24)]


class AtomicAckETH(_ExtensionHeader):
    """The response to an atomic: the value in memory before it."""

    name = "AtomicAckETH"
    size = 8
    fields_desc = [XLongField("original", 0)]


class ImmDt(_ExtensionHeader):
    """Immediate data."""

    name = "ImmDt"
    size = 4
    fields_desc = [XIntField("immediate", 0)]


class IETH(_ExtensionHeader):
    """Invalidate Extended Transport Header: the R_Key to invalidate."""

    name = "IETH"
    size = 4
    fields_desc = [XIntField("r_key", 0)]


class DETH(_ExtensionHeader):
    """Datagram Extended Transport Header."""

    name = "DETH"
    size = 8
    fields_desc = [XIntField("q_key", 0), BitField("reserved", 0, 8), XBitField("src_qp", 0, 24)]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        after = super().guess_payload_class(payload)
        return IPoIB if after is Raw and is_ipoib(payload) else after


class RDETH(_ExtensionHeader):
    """Reliable Datagram Extended Transport Header."""

    name = "RDETH"
    size = 4
    fields_desc = [BitField("reserved", 0, 8), XBitField("ee_context", 0, 24)]


class XRCETH(_ExtensionHeader):
    """XRC Extended Transport Header: the shared receive queue."""

    name = "XRCETH"
    size = 4
    fields_desc = [BitField("reserved", 0, 8), XBitField("srq", 0, 24)]


class FETH(_ExtensionHeader):
    """Flush Extended Transport Header: placement type and selectivity level."""

    name = "FETH"
    size = 4
    fields_desc = [BitField("reserved", 0, 26), BitField("sel", 0, 2), BitField("plt", 0, 4)]


class CNPReserved(_ExtensionHeader):
    """The 16 reserved bytes of a CNP."""

    name = "CNPReserved"
    size = 16
    fields_desc = [StrFixedLenField("reserved", bytes(16), length=16)]


LAYER_OF: dict[Extension, type[Packet]] = {
    Extension.RDETH: RDETH,
    Extension.DETH: DETH,
    Extension.XRCETH: XRCETH,
    Extension.RETH: RETH,
    Extension.ATOMIC_ETH: AtomicETH,
    Extension.AETH: AETH,
    Extension.ATOMIC_ACK_ETH: AtomicAckETH,
    Extension.IMM_DT: ImmDt,
    Extension.IETH: IETH,
    Extension.FETH: FETH,
    Extension.CNP_RESERVED: CNPReserved,
}


def cnp(dest_qp: int, *, p_key: int = 0xFFFF) -> Packet:
    """BTH and payload of a Congestion Notification Packet to the QP that should slow down.

    Annex A17.9.3: BECN is 1, and the rest of the BTH is 0. By convention its DSCP is 48:
    `IP(dst=..., tos=48 << 2) / UDP() / cnp(17)`.
    """
    return BTH(opcode=Opcode.CNP, m=0, becn=1, dest_qp=dest_qp, p_key=p_key) / CNPReserved()


def _layer_after(layer: Packet) -> type[Packet]:
    """The layer that the opcode puts after `layer`, a BTH or one of its extension headers."""
    position = 0
    below: Packet | None = layer
    while isinstance(below, _ExtensionHeader):
        position += 1
        below = below.underlayer
    headers = EXTENSIONS.get(below.opcode, ()) if isinstance(below, BTH) else ()
    return LAYER_OF[headers[position]] if position < len(headers) else Raw


def _icrc_below(bth: BTH, covered: bytes) -> bytes:
    """ICRC over the headers below `bth` and the bytes from it to the pad.

    The headers are built around those bytes and a placeholder of the ICRC, so that their lengths
    are correct.
    """
    packet: Packet = Raw(covered + bytes(crc.ICRC_BYTES))
    layer: Packet = bth
    while layer.underlayer is not None and not _begins_icrc(layer):
        layer = layer.underlayer
        packet = layer.clone_with(payload=packet, **layer.fields)
        packet.underlayer = None
    return _icrc_of(packet, len(covered))


def _begins_icrc(layer: Packet) -> bool:
    """Whether the ICRC covers nothing below it."""
    return isinstance(layer, (IP, IPv6, LRH)) or (
        isinstance(layer, GRH) and not isinstance(layer.underlayer, LRH)
    )


def _icrc_of(packet: Packet, covered: int) -> bytes:
    if isinstance(packet, LRH):
        vcrc_bytes = crc.VCRC_BYTES if packet.vcrc is None else len(packet.vcrc)
        return crc.icrc_ib(bytes(packet)[: -(crc.ICRC_BYTES + vcrc_bytes)])
    built = bytes(packet)[: -crc.ICRC_BYTES]
    if isinstance(packet, IP):
        return crc.icrc_ipv4(built)
    if isinstance(packet, IPv6):
        return crc.icrc_ipv6(built, udp_offset=len(built) - covered - UDP_BYTES)
    if isinstance(packet, GRH):
        return crc.icrc_roce_v1(built)
    return bytes(crc.ICRC_BYTES)
