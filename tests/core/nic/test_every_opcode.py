"""The core's own packets, one of every opcode, as scapy and tshark dissect them.

`every_opcode.c` performs all operations and prints the frames.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from emu.wire.layers import AETH, BTH, LRH, Opcode
from emu.wire.layers.transport import LAYER_OF
from emu.wire.opcodes import EXTENSIONS, Transport
from tests.core.self_tests import run
from tests.support.tshark import MALFORMED, TSHARK_FIELDS, number, tshark, write

FRAMINGS = {"roce": ("0", Ether), "ib": ("1", LRH)}
UNSUPPORTED = {Opcode.RC_FLUSH, Opcode.RC_ATOMIC_WRITE}
SUPPORTED = {
    opcode
    for opcode in Opcode
    if opcode < Transport.RD or opcode & 0xE0 == Transport.UD or opcode is Opcode.CNP
} - UNSUPPORTED


@pytest.fixture(params=FRAMINGS)
def packets(request: pytest.FixtureRequest, programs: Path) -> list[Packet]:
    """All frames that the program printed, dissected."""
    argument, first = FRAMINGS[request.param]
    frames = run(programs / "every_opcode", argument).split()
    return [first(bytes.fromhex(frame)) for frame in frames]


def _layers(packet: Packet) -> Iterator[Packet]:
    while packet:
        yield packet
        packet = packet.payload


def test_program_sends_every_opcode(packets: list[Packet]) -> None:
    """Every opcode that the core supports; no CNP on InfiniBand, where the program marks no
    packet."""
    seen = {packet[BTH].opcode for packet in packets}
    assert seen == SUPPORTED - ({Opcode.CNP} if LRH in packets[0] else set())


def test_packets_have_the_headers_of_their_opcode(packets: list[Packet]) -> None:
    """In order, followed by the payload, if there is one."""
    for packet in packets:
        expected = [LAYER_OF[extension] for extension in EXTENSIONS[packet[BTH].opcode]]
        found = [type(layer) for layer in _layers(packet[BTH].payload)]
        assert [kind for kind in found if kind is not Raw] == expected, packet.summary()


def test_scapy_builds_the_same_bytes(packets: list[Packet]) -> None:
    """Lengths, pads and checksums are computed again, by code outside of the core."""
    for packet in packets:
        original = bytes(packet)
        assert bytes(_rebuilt(packet)) == original, packet.summary()


def _rebuilt(packet: Packet) -> Packet:
    """A copy without the fields that scapy can compute."""
    copy = packet.copy()
    del copy[BTH].icrc, copy[BTH].pad, copy[BTH].pad_count
    if LRH in copy:
        del copy[LRH].vcrc, copy[LRH].pktlen
    else:
        del copy[IP].len, copy[IP].chksum
    return copy


def test_selective_repeat_nak_reports_what_arrived(packets: list[Packet]) -> None:
    """Eight bytes after the AETH: the newest run of packets that arrived."""
    (nak,) = [p for p in packets if AETH in p and p[AETH].syndrome == 0x60]
    first, end = nak[Raw].load[1:4], nak[Raw].load[5:8]
    assert int.from_bytes(first) == nak[BTH].psn + 1
    assert int.from_bytes(end) == nak[BTH].psn + 2


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark: apt-get install tshark")
def test_tshark_dissects_them_cleanly(packets: list[Packet], tmp_path: Path) -> None:
    """The extension headers have the expected values, and no packet is malformed."""
    path = tmp_path / "capture"
    write(path, packets)
    fields = sorted({field for names in TSHARK_FIELDS.values() for field in names.values()})
    rows = tshark(path, ["infiniband.bth.opcode", *fields])
    for packet, row in zip(packets, rows, strict=True):
        assert row.pop(MALFORMED) == "", packet.summary()
        assert number(row.pop("infiniband.bth.opcode")) == packet[BTH].opcode
        found = {field: number(value) for field, value in row.items() if value}
        assert found == _values(packet), packet.summary()


def _values(packet: Packet) -> dict[str, int]:
    """The values that tshark's fields should show for a packet."""
    return {
        field: packet[layer].getfieldval(name)
        for layer, names in TSHARK_FIELDS.items()
        if layer in packet
        for name, field in names.items()
    }
