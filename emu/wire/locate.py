"""Finds the InfiniBand transport in a captured frame.

    Ethernet, any VLAN tags, IPv4 with options or IPv6 with extension headers, UDP 4791    RoCEv2
    Ethernet, any VLAN tags, ethertype 0x8915, GRH                                         RoCEv1
    LRH, GRH or not                                                                        native

Linux cooked headers and bare IP are handled like Ethernet. Each step returns what it
found instead if it is not the transport, and raises CutShort if the captured bytes
end inside a header.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from struct import Struct

from emu.wire import crc
from emu.wire.capture import LinkType

ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROCE_V1 = 0x0800, 0x86DD, 0x8915
ETHERTYPE_MAC_CONTROL = 0x8808
ROCE_V2_PORT = 4791

_VLAN_ETHERTYPES = frozenset({0x8100, 0x88A8, 0x9100})
_ETHERNET_BYTES, _VLAN_BYTES = 14, 4
_IPV6_BYTES, _GRH_BYTES, _LRH_BYTES, _UDP_BYTES, _BTH_BYTES = 40, 40, 8, 8, 12
_PROTOCOL_UDP, _NEXT_HEADER_BTH = 17, 0x1B
_IPV6_OPTIONS = frozenset({0, 43, 60})
"""Hop-by-hop, routing and destination options. They begin with the next header, and their length
beyond the first 8 bytes, in units of 8 bytes."""
_IPV6_FRAGMENT = 44
_FRAGMENT_OFFSET_MASK, _MORE_FRAGMENTS = 0x1FFF, 0x2000
_IPV6_FRAGMENT_OFFSET_MASK, _IPV6_MORE_FRAGMENTS = 0xFFF8, 0x0001

_BARE_IP = frozenset(
    {LinkType.RAW, LinkType.RAW_BSD, LinkType.RAW_OPENBSD, LinkType.IPV4, LinkType.IPV6}
)

_SHORT = Struct(">H")
_UDP = Struct(">HHH")
_LRH = Struct(">BBHHH")

_ETHERTYPE_NAMES = {0x0806: "ARP", 0x88CC: "LLDP", ETHERTYPE_MAC_CONTROL: "MAC control"}
_PROTOCOL_NAMES = {1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 89: "OSPF"}


class CutShort(Exception):
    """The captured bytes end inside a header; the text is the header's name."""


class Carrier(StrEnum):
    """The protocol that carries the transport."""

    ROCE_V2_IPV4 = "RoCEv2 over IPv4"
    ROCE_V2_IPV6 = "RoCEv2 over IPv6"
    ROCE_V1 = "RoCEv1"
    IB_LOCAL = "InfiniBand local"
    IB_GLOBAL = "InfiniBand global"


@dataclass(frozen=True, slots=True)
class TransportPacket:
    """The places of headers in a frame. Offsets count from the frame's first byte."""

    carrier: Carrier
    start: int
    """The start of the carrier's header, where the ICRC's coverage begins."""
    bth: int
    end: int
    """The end of the ICRC, by the lengths in the headers. The captured bytes may end earlier."""
    src: bytes
    dst: bytes
    ecn: int | None = None
    """The ECN bits of IP; None for native InfiniBand and RoCEv1."""
    source_port: int | None = None
    fragment: bool = False
    options: bool = False
    """Whether there are IPv4 options or IPv6 extension headers."""


@dataclass(frozen=True, slots=True)
class Other:
    """A frame without an InfiniBand transport. `what` names its protocol."""

    what: str
    fragment: bool = False


@dataclass(frozen=True, slots=True)
class NetworkPacket:
    """The network packet in an Ethernet or cooked frame: its ethertype, its offset, and the number
    of VLAN tags before it."""

    ethertype: int
    offset: int
    vlan_tags: int = 0


def network_packet(linktype: int, data: bytes) -> NetworkPacket:
    """The network packet behind the link layer. Raises CutShort."""
    if linktype == LinkType.LINUX_SLL:
        return _behind_tags(data, _short(data, 14, "Linux cooked header"), 16)
    if linktype == LinkType.LINUX_SLL2:
        _need(data, 20, "Linux cooked header")
        return _behind_tags(data, _short(data, 0, "Linux cooked header"), 20)
    if linktype in _BARE_IP:
        _need(data, 1, "IP")
        return NetworkPacket(ETHERTYPE_IPV6 if data[0] >> 4 == 6 else ETHERTYPE_IPV4, 0)
    return _behind_tags(data, _short(data, 12, "Ethernet"), _ETHERNET_BYTES)


def find_transport(data: bytes, packet: NetworkPacket) -> TransportPacket | Other:
    """The transport in a network packet. Raises CutShort."""
    if packet.ethertype == ETHERTYPE_IPV4:
        return _in_ipv4(data, packet.offset)
    if packet.ethertype == ETHERTYPE_IPV6:
        return _in_ipv6(data, packet.offset)
    if packet.ethertype == ETHERTYPE_ROCE_V1:
        return _in_roce_v1(data, packet.offset)
    name = _ETHERTYPE_NAMES.get(packet.ethertype, f"ethertype 0x{packet.ethertype:04x}")
    return Other(name if packet.ethertype >= 0x0600 else "LLC")


def find_native_transport(data: bytes) -> TransportPacket | Other:
    """The transport in a native packet, which begins with the LRH. Raises CutShort."""
    _need(data, _LRH_BYTES, "LRH")
    _, second, dlid, _, slid = _LRH.unpack_from(data)
    lnh, end = second & 3, ib_packet_bytes(data)
    src, dst = slid.to_bytes(2, "big"), dlid.to_bytes(2, "big")
    if lnh == 2:
        return TransportPacket(Carrier.IB_LOCAL, 0, _LRH_BYTES, end, src, dst)
    if lnh == 3:
        bth = _LRH_BYTES + _GRH_BYTES
        _need(data, bth, "GRH")
        if data[_LRH_BYTES + 6] != _NEXT_HEADER_BTH:
            return Other("GRH without BTH")
        return TransportPacket(Carrier.IB_GLOBAL, 0, bth, end, src, dst)
    return Other("raw InfiniBand packet")


def ib_packet_bytes(data: bytes) -> int:
    """The number of bytes of a native packet from LRH to ICRC, from PktLen. Raises CutShort."""
    return (_short(data, 4, "LRH") & 0x7FF) * 4


def expected_icrc(data: bytes, transport: TransportPacket) -> bytes | None:
    """The correct ICRC of the frame; None for a fragment or a frame that is not complete."""
    if len(data) < transport.end or transport.fragment:
        return None
    if transport.end < transport.bth + _BTH_BYTES + crc.ICRC_BYTES:
        return None
    covered = memoryview(data)[transport.start : transport.end - crc.ICRC_BYTES]
    if transport.carrier is Carrier.ROCE_V2_IPV4:
        return crc.icrc_ipv4(covered)
    if transport.carrier is Carrier.ROCE_V2_IPV6:
        udp_offset = transport.bth - _UDP_BYTES - transport.start
        return crc.icrc_ipv6(covered, udp_offset=udp_offset)
    if transport.carrier is Carrier.ROCE_V1:
        return crc.icrc_roce_v1(covered)
    return crc.icrc_ib(covered)


def _behind_tags(data: bytes, ethertype: int, offset: int) -> NetworkPacket:
    tags = 0
    while ethertype in _VLAN_ETHERTYPES:
        ethertype = _short(data, offset + 2, "VLAN tag")
        offset += _VLAN_BYTES
        tags += 1
    return NetworkPacket(ethertype, offset, tags)


def _in_ipv4(data: bytes, start: int) -> TransportPacket | Other:
    _need(data, start + 20, "IPv4")
    header_bytes = (data[start] & 0x0F) * 4
    if header_bytes < 20:
        return Other("IPv4 with a header length below 20")
    fragment_field = _short(data, start + 6, "IPv4")
    fragment = bool(fragment_field & (_FRAGMENT_OFFSET_MASK | _MORE_FRAGMENTS))
    protocol = data[start + 9]
    if protocol != _PROTOCOL_UDP:
        return Other(_protocol_name(protocol), fragment)
    if fragment_field & _FRAGMENT_OFFSET_MASK:
        return Other("later fragment of UDP", fragment)
    return _in_udp(
        data,
        start + header_bytes,
        Carrier.ROCE_V2_IPV4,
        start=start,
        src=data[start + 12 : start + 16],
        dst=data[start + 16 : start + 20],
        ecn=data[start + 1] & 3,
        fragment=fragment,
    )


def _in_ipv6(data: bytes, start: int) -> TransportPacket | Other:
    _need(data, start + _IPV6_BYTES, "IPv6")
    next_header, offset = data[start + 6], start + _IPV6_BYTES
    fragment = later = False
    while next_header in _IPV6_OPTIONS or next_header == _IPV6_FRAGMENT:
        _need(data, offset + 8, "IPv6 extension header")
        extension_bytes = 8
        if next_header == _IPV6_FRAGMENT:
            field = _short(data, offset + 2, "IPv6 extension header")
            later = later or bool(field & _IPV6_FRAGMENT_OFFSET_MASK)
            fragment = fragment or later or bool(field & _IPV6_MORE_FRAGMENTS)
        else:
            extension_bytes += data[offset + 1] * 8
        next_header, offset = data[offset], offset + extension_bytes
        if later:
            return Other(f"later fragment of {_protocol_name(next_header)}", fragment)
    if next_header != _PROTOCOL_UDP:
        return Other(_protocol_name(next_header), fragment)
    return _in_udp(
        data,
        offset,
        Carrier.ROCE_V2_IPV6,
        start=start,
        src=data[start + 8 : start + 24],
        dst=data[start + 24 : start + 40],
        ecn=data[start + 1] >> 4 & 3,
        fragment=fragment,
    )


def _in_udp(
    data: bytes,
    udp: int,
    carrier: Carrier,
    *,
    start: int,
    src: bytes,
    dst: bytes,
    ecn: int,
    fragment: bool,
) -> TransportPacket | Other:
    _need(data, udp + 6, "UDP")
    source_port, destination_port, length = _UDP.unpack_from(data, udp)
    if destination_port != ROCE_V2_PORT:
        return Other("UDP", fragment)
    if length < _UDP_BYTES + _BTH_BYTES + crc.ICRC_BYTES:
        return Other("UDP 4791, too short for RoCE", fragment)
    plain = 20 if carrier is Carrier.ROCE_V2_IPV4 else _IPV6_BYTES
    return TransportPacket(
        carrier,
        start,
        udp + _UDP_BYTES,
        udp + length,
        src,
        dst,
        ecn=ecn,
        source_port=source_port,
        fragment=fragment,
        options=udp - start > plain,
    )


def _in_roce_v1(data: bytes, start: int) -> TransportPacket | Other:
    bth = start + _GRH_BYTES
    _need(data, bth, "GRH")
    if data[start + 6] != _NEXT_HEADER_BTH:
        return Other("GRH without BTH")
    end = bth + _short(data, start + 4, "GRH")
    src, dst = data[start + 8 : start + 24], data[start + 24 : bth]
    return TransportPacket(Carrier.ROCE_V1, start, bth, end, src, dst)


def _protocol_name(protocol: int) -> str:
    return _PROTOCOL_NAMES.get(protocol, f"IP protocol {protocol}")


def _need(data: bytes, length: int, header: str) -> None:
    if len(data) < length:
        raise CutShort(header)


def _short(data: bytes, offset: int, header: str) -> int:
    _need(data, offset + 2, header)
    return int(_SHORT.unpack_from(data, offset)[0])
