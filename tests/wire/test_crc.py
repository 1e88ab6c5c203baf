"""ICRC, VCRC and LPCRC, compared with known packets and with the definition bit by bit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import Ether

from emu.errors import LocalProtocolError
from emu.wire import crc
from emu.wire.layers import BTH, GRH
from tests.support import known_packets as vectors


@pytest.mark.parametrize("vector", vectors.NATIVE, ids=lambda v: v.name)
def test_icrc_and_vcrc_match_known_native_packets(vector: vectors.Vector) -> None:
    """Packets from real hardware and from a vendor's generator."""
    assert crc.icrc_ib(vector.covered) == vector.icrc
    assert crc.vcrc(vector.covered + vector.icrc) == vector.vcrc


def test_icrc_matches_known_roce_packets() -> None:
    """RoCEv2 over IPv4 and over IPv6."""
    for vector in (vectors.REAL_ROCE_ACK, vectors.CNP, vectors.PADDED_SEND):
        assert crc.icrc_ipv4(vector.covered) == vector.icrc
    ipv6 = vectors.READ_REQUEST_IPV6
    assert crc.icrc_ipv6(ipv6.covered) == ipv6.icrc


def test_switch_changes_keep_the_icrc_valid() -> None:
    """A CE mark, another DSCP and a lower TTL."""
    packet = bytearray(vectors.PADDED_SEND.covered)
    packet[1] = 0xFF
    packet[8] -= 1
    packet[10:12] = b"\x12\x34"
    assert crc.icrc_ipv4(packet) == vectors.PADDED_SEND.icrc


def test_rewritten_address_or_port_breaks_the_icrc() -> None:
    """The ICRC covers all that a switch must not change: addresses, ports, the payload."""
    for offset in (12, 16, 21, 28, 45):
        packet = bytearray(vectors.PADDED_SEND.covered)
        packet[offset] ^= 1
        assert crc.icrc_ipv4(packet) != vectors.PADDED_SEND.icrc


def test_icrc_covers_ip_options() -> None:
    """IPv4 options and IPv6 extension headers come between the masked fields and UDP."""
    plain = bytes(IP() / UDP() / BTH() / b"data")
    with_options = bytes(IP(options=[IPOption_NOP()] * 4) / UDP() / BTH() / b"data")
    assert crc.icrc_ipv4(with_options[:-4]) == with_options[-4:] != plain[-4:]
    extended = bytes(IPv6() / IPv6ExtHdrDestOpt() / UDP() / BTH() / b"data")
    assert crc.icrc_ipv6(extended[:-4], udp_offset=48) == extended[-4:]


def test_icrc_of_roce_v1_is_that_of_ipv6_fields() -> None:
    """Traffic class, flow label and hop limit of the GRH do not count; its addresses do."""
    packets = [
        bytes(Ether() / grh / BTH() / b"data")[14:-4]
        for grh in (GRH(), GRH(tclass=3, flowlabel=9, hoplmt=1), GRH(dgid="::1"))
    ]
    first, changed_on_the_way, elsewhere = (crc.icrc_roce_v1(packet) for packet in packets)
    assert first == changed_on_the_way != elsewhere


@pytest.mark.parametrize(
    ("packet", "expected"), [("00000000", "b362"), ("10000080", "50d5"), ("01232456", "6a84")]
)
def test_lpcrc_matches_flow_control_packets(packet: str, expected: str) -> None:
    """The same CRC-16 as the VCRC, over four bytes."""
    assert crc.lpcrc(bytes.fromhex(packet)).hex() == expected


def test_raw_packets_have_no_icrc() -> None:
    """LNH 0 and 1 carry none, so a request for one is the caller's error."""
    with pytest.raises(LocalProtocolError, match="LNH 0"):
        crc.icrc_ib(bytes(40))


@pytest.mark.parametrize(
    "icrc", [crc.icrc_ib, crc.icrc_ipv4, crc.icrc_ipv6, crc.icrc_roce_v1], ids=lambda f: f.__name__
)
def test_truncated_headers_are_refused(icrc: object) -> None:
    """Too few bytes for the headers are an error, never an index out of range."""
    assert callable(icrc)
    packet = b"\x45\x02" + bytes(18)
    for length in range(len(packet)):
        with pytest.raises(LocalProtocolError):
            icrc(packet[:length])


@given(st.binary(max_size=64))
def test_vcrc_equals_its_bitwise_definition(packet: bytes) -> None:
    """The table look-ups give the result of shifting bit by bit."""
    assert crc.vcrc(packet) == _crc16_bit_by_bit(packet)


@pytest.mark.parametrize("length", [4351, 4352, 4353, 4354, 9000])
def test_vcrc_covers_long_packets(length: int) -> None:
    """Also longer than one block of the table."""
    packet = bytes(i * 7 & 0xFF for i in range(length))
    assert crc.vcrc(packet) == _crc16_bit_by_bit(packet)


def _crc16_bit_by_bit(packet: bytes) -> bytes:
    register = 0xFFFF
    for octet in packet:
        register ^= octet
        for _ in range(8):
            register = register >> 1 ^ (0xD008 if register & 1 else 0)
    return (register ^ 0xFFFF).to_bytes(2, "little")
