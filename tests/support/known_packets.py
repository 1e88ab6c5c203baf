"""Packets whose bytes are known to be correct from sources outside of this project.

`covered` is the input of the ICRC before its bits are masked; `icrc` and `vcrc` are as transmitted.
"""

from __future__ import annotations

from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from emu.wire.layers import AETH, BTH, GRH, LRH, RETH, Opcode, cnp, pfc


@dataclass(frozen=True)
class Vector:
    """A packet as bytes and as layers."""

    name: str
    link: bytes
    """The Ethernet header; empty for native packets."""
    covered: bytes
    icrc: bytes
    vcrc: bytes
    layers: Packet
    """The same packet from layers, with all computable fields left out."""

    @property
    def frame(self) -> bytes:
        return self.link + self.covered + self.icrc + self.vcrc


def _bytes(*parts: str) -> bytes:
    return bytes.fromhex("".join(parts))


_WRITE_AND_PAD = _bytes(
    "0a2024870087b1b3000dec2a01710a1c015d400238f27a050000000e",
    "bb884d85fd5cfba4728bc0690ed40000",
)

REAL_ROCE_ACK = Vector(
    "ACK of a RoCEv2 NIC",
    _bytes("183d5ebf4371183d5ebf51920800"),
    _bytes(
        "450200300000400040112d60c0a84606c0a84604",
        "004812b7001c0000",
        "1140ffff0000004500000000",
        "06000001",
    ),
    _bytes("259cc216"),
    b"",
    Ether(dst="18:3d:5e:bf:43:71", src="18:3d:5e:bf:51:92")
    / IP(src="192.168.70.6", dst="192.168.70.4", tos=2, id=0, flags="DF")
    / UDP(sport=72)
    / BTH(opcode=Opcode.RC_ACKNOWLEDGE, dest_qp=0x45, psn=0)
    / AETH(syndrome=6, msn=1),
)

CNP = Vector(
    "CNP",
    b"",
    _bytes(
        "45c0003c00004000401125ef0a0000020a000001",
        "c00012b700280000",
        "8100ffff400000d200000000",
        "00" * 16,
    ),
    _bytes("ea37a322"),
    b"",
    IP(src="10.0.0.2", dst="10.0.0.1", tos=48 << 2, id=0, flags="DF") / UDP() / cnp(0xD2),
)

PADDED_SEND = Vector(
    "SEND of five bytes",
    b"",
    _bytes(
        "456a0034000040004011264d0a0000010a000002",
        "c12312b700200000",
        "0470ffff0000001180000001",
        "68656c6c6f000000",
    ),
    _bytes("193bad22"),
    b"",
    IP(src="10.0.0.1", dst="10.0.0.2", tos=26 << 2 | 2, id=0, flags="DF")
    / UDP(sport=0xC123)
    / BTH(opcode=Opcode.RC_SEND_ONLY, dest_qp=0x11, ack_req=1, psn=1)
    / b"hello",
)

READ_REQUEST_IPV6 = Vector(
    "READ request over IPv6",
    b"",
    _bytes(
        "66a0000000281140fe80000000000000020000fffe000001fe80000000000000020000fffe000002",
        "c00112b700280000",
        "0c40ffff0000001180abcdef",
        "11223344556677880000beef00002000",
    ),
    _bytes("62fe7d86"),
    b"",
    IPv6(src="fe80::200:ff:fe00:1", dst="fe80::200:ff:fe00:2", tc=26 << 2 | 2)
    / UDP(sport=0xC001)
    / BTH(opcode=Opcode.RC_RDMA_READ_REQUEST, dest_qp=0x11, ack_req=1, psn=0xABCDEF)
    / RETH(va=0x1122334455667788, r_key=0xBEEF, dma_len=0x2000),
)

REAL_IB_ACK = Vector(
    "ACK of an InfiniBand adapter",
    b"",
    _bytes("0002000400070001", "1140ffff0087040800d40a55", "1f000001"),
    _bytes("a8035550"),
    _bytes("3081"),
    LRH(slid=1, dlid=4)
    / BTH(opcode=Opcode.RC_ACKNOWLEDGE, dest_qp=0x870408, psn=0xD40A55)
    / AETH(syndrome=0x1F, msn=1),
)

_WRITE = (
    BTH(opcode=Opcode.RC_RDMA_WRITE_ONLY, m=0, p_key=0x2487, dest_qp=0x87B1B3, psn=0x0DEC2A)
    / RETH(va=0x01710A1C015D4002, r_key=0x38F27A05, dma_len=14)
    / bytes.fromhex("bb884d85fd5cfba4728bc0690ed4")
)

IB_LOCAL_WRITE = Vector(
    "WRITE on a subnet",
    b"",
    _bytes("7012375c000e17d2") + _WRITE_AND_PAD,
    _bytes("9625b75a"),
    _bytes("45fa"),
    LRH(vl=7, sl=1, dlid=0x375C, slid=0x17D2) / _WRITE,
)

IB_GLOBAL_WRITE = Vector(
    "WRITE with a GRH",
    b"",
    _bytes(
        "7013375c001817d2",
        "6000000000301b40fe80",
        "00" * 13,
        "0afe80",
        "00" * 13,
        "0b",
    )
    + _WRITE_AND_PAD,
    _bytes("ef1d3580"),
    _bytes("37cd"),
    LRH(vl=7, sl=1, dlid=0x375C, slid=0x17D2) / GRH(sgid="fe80::a", dgid="fe80::b") / _WRITE,
)

PFC = Vector(
    "PFC frame",
    b"",
    _bytes("0180c2000001020000000001880801010008000000000000ffff").ljust(60, b"\0"),
    b"",
    b"",
    pfc({3: 0xFFFF}, src="02:00:00:00:00:01"),
)

ROCE_V2 = (REAL_ROCE_ACK, CNP, PADDED_SEND, READ_REQUEST_IPV6)
NATIVE = (REAL_IB_ACK, IB_LOCAL_WRITE, IB_GLOBAL_WRITE)
WITH_ICRC = (*ROCE_V2, *NATIVE)
ALL = (*WITH_ICRC, PFC)
