"""The three checksums of InfiniBand and RoCE, in Python: ICRC, VCRC, LPCRC.

This code is independent of the C core on purpose, so that each can check the other.

The ICRC, "invariant", is end to end. It is the CRC-32 of zlib, sent least significant byte
first, over the packet with every bit that a switch may change forced to one:

    carrier              covered, in this order                   forced to one
    RoCEv2 over IPv4     8 x FF, IP with options, UDP, BTH..pad   TOS, TTL, IP and UDP checksum
    RoCEv2 over IPv6     8 x FF, IP, UDP, BTH..pad                traffic class, flow label,
                                                                  hop limit, UDP checksum
    RoCEv1               8 x FF, GRH, BTH..pad                    the same fields of the GRH
    native, LNH 2        LRH, BTH..pad                            VL
    native, LNH 3        LRH, GRH, BTH..pad                       LRH; those fields of the GRH

In all of them, the fifth byte of the BTH (FECN, BECN, reserved) is forced to one, too.
So ECN marking and changes of TTL and DSCP keep the ICRC valid; NAT does not.

The VCRC, "variant", covers one link. The LPCRC is that of link packets. Both are the CRC-16
with polynomial 0x100B, reflected, complemented before and after, and sent least
significant byte first.

Sources: Linux `rxe_icrc.c`, and real captures of RoCEv2 and InfiniBand, whose checksums
all agree with this code (RoCEv1 was not among them).
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from emu.errors import LocalProtocolError

ICRC_BYTES = 4
VCRC_BYTES = 2
LPCRC_BYTES = 2

_LRH_BYTES = 8
_GRH_BYTES = 40
_IPV6_BYTES = 40
_UDP_BYTES = 8
_BTH_BYTES = 12
_BTH_FECN_BECN = 4
_DUMMY_LRH = crc32(b"\xff" * _LRH_BYTES)
_LNH_MASK, _LNH_LOCAL, _LNH_GLOBAL = 0x03, 2, 3

Buffer = bytes | bytearray | memoryview


def icrc_ipv4(packet: Buffer) -> bytes:
    """ICRC of a RoCEv2 packet, given from the first byte of IPv4 to the last of the pad."""
    udp = (packet[0] & 0x0F) * 4 if len(packet) else 0
    bth = udp + _UDP_BYTES
    head = _head(packet, bth + _BTH_BYTES)
    head[1] = head[8] = head[10] = head[11] = 0xFF
    _force(head, udp + 6, 2)
    return _icrc(head, packet, bth, _DUMMY_LRH)


def icrc_ipv6(packet: Buffer, *, udp_offset: int = _IPV6_BYTES) -> bytes:
    """ICRC of a RoCEv2 packet, given from the first byte of IPv6 to the last of the pad.

    `udp_offset` is more than 40 where extension headers precede UDP; they are covered as they are.
    """
    bth = udp_offset + _UDP_BYTES
    head = _head(packet, bth + _BTH_BYTES)
    _force_ipv6(head, 0)
    _force(head, udp_offset + 6, 2)
    return _icrc(head, packet, bth, _DUMMY_LRH)


def icrc_roce_v1(packet: Buffer) -> bytes:
    """ICRC of a RoCEv1 packet, given from the first byte of the GRH to the last of the pad."""
    head = _head(packet, _GRH_BYTES + _BTH_BYTES)
    _force_ipv6(head, 0)
    return _icrc(head, packet, _GRH_BYTES, _DUMMY_LRH)


def icrc_ib(packet: Buffer) -> bytes:
    """ICRC of a native packet, given from the first byte of the LRH to the last of the pad.

    Raises LocalProtocolError for raw packets (LNH 0 and 1), which have no ICRC.
    """
    lnh = packet[1] & _LNH_MASK if len(packet) > 1 else _LNH_LOCAL
    if lnh == _LNH_LOCAL:
        head = _head(packet, _LRH_BYTES + _BTH_BYTES)
        head[0] |= 0xF0
        return _icrc(head, packet, _LRH_BYTES, 0)
    if lnh == _LNH_GLOBAL:
        bth = _LRH_BYTES + _GRH_BYTES
        head = _head(packet, bth + _BTH_BYTES)
        _force(head, 0, _LRH_BYTES)
        _force_ipv6(head, _LRH_BYTES)
        return _icrc(head, packet, bth, 0)
    raise LocalProtocolError(f"a raw packet (LNH {lnh}) has no ICRC; only LNH 2 and 3 have")


def vcrc(packet: Buffer) -> bytes:
    """VCRC of a packet, given from the first byte of the LRH to the last of the ICRC."""
    return _crc16(packet).to_bytes(VCRC_BYTES, "little")


def lpcrc(packet: Buffer) -> bytes:
    """LPCRC of a flow-control packet, given its first four bytes."""
    return _crc16(packet).to_bytes(LPCRC_BYTES, "little")


def _head(packet: Buffer, length: int) -> bytearray:
    """A copy of the headers, in which bits can be forced to one."""
    if len(packet) < length:
        raise LocalProtocolError(f"the ICRC needs {length} bytes of headers, got {len(packet)}")
    return bytearray(packet[:length])


def _force(head: bytearray, offset: int, length: int) -> None:
    head[offset : offset + length] = b"\xff" * length


def _force_ipv6(head: bytearray, offset: int) -> None:
    """Forces traffic class, flow label and hop limit to one. An IPv6 header and a GRH have them at
    the same offsets."""
    head[offset] |= 0x0F
    _force(head, offset + 1, 3)
    head[offset + 7] = 0xFF


def _icrc(head: bytearray, packet: Buffer, bth: int, start: int) -> bytes:
    head[bth + _BTH_FECN_BECN] = 0xFF
    rest = memoryview(packet)[len(head) :]
    return crc32(rest, crc32(head, start)).to_bytes(ICRC_BYTES, "little")


# --- CRC-16 -----------------------------------------------------------------
#
# A loop over bytes in Python takes a millisecond for 4 KB. A CRC is linear: the
# register after a block is the exclusive or of one contribution per byte, which
# depends on the byte and its distance from the end. numpy looks all of them up
# in a table at once. The register before the block is exclusive-ored into the
# block's first two bytes.

_POLYNOMIAL = 0xD008  # 0x100B reflected
_BLOCK = 4096 + 256  # any packet is one block
_ROWS = np.arange(_BLOCK - 1, -1, -1, dtype=np.intp) * 256
"""The start of the table row for each byte of a block. The last byte uses the first row."""


@cache
def _contributions() -> NDArray[np.uint16]:
    """Rows of 256 values. Row d has the contribution of each byte value that d more bytes of the
    block follow."""
    register = np.arange(256, dtype=np.uint16)
    for _ in range(8):
        register = np.where(register & 1, (register >> 1) ^ _POLYNOMIAL, register >> 1)
    one_byte = register.astype(np.uint16)
    table = np.empty((_BLOCK, 256), np.uint16)
    table[0] = one_byte
    for distance in range(1, _BLOCK):
        before = table[distance - 1]
        table[distance] = (before >> 8) ^ one_byte[before & 0xFF]
    return table.ravel()


def _crc16(packet: Buffer) -> int:
    octets = np.frombuffer(packet, np.uint8)
    register = 0xFFFF
    for start in range(0, len(octets), _BLOCK):
        register = _crc16_block(octets[start : start + _BLOCK], register)
    return register ^ 0xFFFF


def _crc16_block(octets: NDArray[np.uint8], register: int) -> int:
    indices = octets.astype(np.intp)
    indices[0] ^= register & 0xFF
    if len(octets) == 1:
        carried = register >> 8
    else:
        indices[1] ^= register >> 8
        carried = 0
    indices += _ROWS[-len(octets) :]
    return carried ^ int(np.bitwise_xor.reduce(_contributions().take(indices)))
