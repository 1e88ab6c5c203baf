"""tshark reads every file that the project writes: the same fields, and no malformed packet."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from emu.fabric_kind import FABRIC_KINDS
from emu.wire import erf
from emu.wire.capture import Direction, LinkType
from emu.wire.convert import convert
from emu.wire.layers import (
    AETH,
    BTH,
    DETH,
    GRH,
    IETH,
    LRH,
    RETH,
    AtomicAckETH,
    AtomicETH,
    FlowControl,
    ImmDt,
    IPoIB,
    cnp,
    pfc,
)
from emu.wire.layers.transport import LAYER_OF
from emu.wire.opcodes import EXTENSIONS, Opcode, Transport
from emu.wire.raw import RawKind
from tests.support import capture_files as files
from tests.support.tshark import BTH_FIELDS, MALFORMED, TSHARK_FIELDS, number, tshark, write

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="needs tshark: apt-get install tshark"
)

ETHERNET = Ether(dst="02:00:0a:00:00:02", src="02:00:0a:00:00:01")
CARRIERS: dict[str, Packet] = {
    "ipv4": ETHERNET / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(),
    "ipv6": ETHERNET / IPv6(src="fe80::1", dst="fe80::2") / UDP(),
    "roce-v1": ETHERNET / GRH(sgid="fe80::1", dgid="fe80::2"),
    "ib-local": LRH(slid=1, dlid=2),
    "ib-global": LRH(slid=1, dlid=2) / GRH(sgid="fe80::1", dgid="fe80::2"),
}
TSHARK_KNOWS = [o for o in Opcode if o < Transport.RD and o not in (0x1C, 0x1D)] + [
    Opcode.UD_SEND_ONLY,
    Opcode.UD_SEND_ONLY_WITH_IMMEDIATE,
]
"""tshark 4.0 has no FLUSH, ATOMIC WRITE or XRC, and does not parse RD's headers."""

VALUES: dict[type[Packet], dict[str, int]] = {
    RETH: {"va": 0x1122334455667788, "r_key": 0xBEEF, "dma_len": 5000},
    AETH: {"syndrome": 0x1F, "msn": 77},
    AtomicETH: {"va": 4096, "r_key": 7, "swap_add": 0x0102030405060708, "compare": 0x99},
    AtomicAckETH: {"original": 0x0A0B0C0D0E0F1011},
    ImmDt: {"immediate": 0xCAFEBABE},
    IETH: {"r_key": 0xFEED},
    DETH: {"q_key": 0x80010000, "src_qp": 0x1234},
}
PAYLOAD = b"twenty-one bytes, odd"
"""tshark takes the last bytes of a SEND, if they are twelve or fewer, for a malformed RPC over
RDMA."""


def packet_with(opcode: Opcode) -> Packet:
    """A BTH, the opcode's headers with distinct values, and a payload if the opcode has one."""
    packet: Packet = BTH(opcode=opcode, dest_qp=0x123456, psn=0xABCDEF, ack_req=1)
    for extension in EXTENSIONS[opcode]:
        header = LAYER_OF[extension]()
        for name, value in VALUES.get(type(header), {}).items():
            header.setfieldval(name, value)
        packet = packet / header
    return packet if opcode in (Opcode.RC_ACKNOWLEDGE, Opcode.CNP) else packet / PAYLOAD


@pytest.mark.parametrize("carrier", CARRIERS)
def test_tshark_reads_every_opcode_on_every_carrier(tmp_path: Path, carrier: str) -> None:
    """BTH and extension headers have the values they were built with."""
    path = tmp_path / "capture"
    packets = [CARRIERS[carrier] / packet_with(opcode) for opcode in Opcode]
    write(path, packets)
    extension_fields = sorted({f for names in TSHARK_FIELDS.values() for f in names.values()})
    rows = tshark(path, [*BTH_FIELDS.values(), *extension_fields])
    assert len(rows) == len(packets)
    for opcode, packet, row in zip(Opcode, packets, rows, strict=True):
        assert row.pop(MALFORMED) == "", opcode.name
        built = type(packet)(bytes(packet))
        bth = {field: built[BTH].getfieldval(name) for name, field in BTH_FIELDS.items()}
        assert {field: number(row.pop(field)) for field in bth} == bth, opcode.name
        if opcode in TSHARK_KNOWS:
            found = {field: number(value) for field, value in row.items() if value}
            assert found == _extension_values(built), opcode.name


def _extension_values(packet: Packet) -> dict[str, int]:
    return {
        field: packet[layer].getfieldval(name)
        for layer, names in TSHARK_FIELDS.items()
        if layer in packet
        for name, field in names.items()
    }


def test_tshark_reads_link_headers_and_checksums(tmp_path: Path) -> None:
    """LRH, GRH, and ICRC and VCRC at their places."""
    path = tmp_path / "capture"
    packet = LRH(vl=3, sl=2, slid=0x17, dlid=0x2A) / GRH(tclass=5, sgid="fe80::a", dgid="fe80::b")
    packet = LRH(bytes(packet / BTH(dest_qp=9) / PAYLOAD))
    write(path, [packet])
    expected = {
        "infiniband.lrh.vl": packet.vl,
        "infiniband.lrh.sl": packet.sl,
        "infiniband.lrh.lnh": packet.lnh,
        "infiniband.lrh.dlid": packet.dlid,
        "infiniband.lrh.slid": packet.slid,
        "infiniband.lrh.pktlen": packet.pktlen,
        "infiniband.grh.tclass": 5,
        "infiniband.grh.paylen": packet[GRH].paylen,
        "infiniband.invariant.crc": int.from_bytes(packet[BTH].icrc, "big"),
        "infiniband.variant.crc": int.from_bytes(packet.vcrc, "big"),
    }
    (row,) = tshark(path, list(expected))
    assert row.pop(MALFORMED) == ""
    assert {field: number(value or "-1") for field, value in row.items()} == expected


def test_tshark_reads_ip_packets_in_datagrams(tmp_path: Path) -> None:
    """It finds IP after the 4 bytes of IPoIB, as the layers do."""
    path = tmp_path / "capture"
    send = CARRIERS["ib-local"] / BTH(opcode=Opcode.UD_SEND_ONLY, dest_qp=17)
    packet = (
        send
        / DETH(q_key=0xB1B, src_qp=17)
        / IPoIB()
        / IP(src="10.0.0.1", dst="10.0.0.2", ttl=9)
        / ICMP(id=7, seq=8)
    )
    write(path, [packet])
    expected = {"ip.src": "10.0.0.1", "ip.ttl": "9", "icmp.seq": "8", "icmp.checksum.status": "1"}
    (row,) = tshark(path, list(expected))
    assert row == {**expected, MALFORMED: ""}
    dissected = LRH(bytes(packet))
    assert dissected[IPoIB].fields == {"proto": 0x0800, "reserved": 0}
    assert dissected[ICMP].seq == 8


def test_tshark_reads_pause_frames(tmp_path: Path) -> None:
    """The class enable vector and the times."""
    path = tmp_path / "capture"
    write(path, [pfc({3: 0xFFFF}), pfc({3: 0, 5: 7})])
    times = [f"macc.cbfc.pause_time.c{n}" for n in (3, 5)]
    xoff, xon = tshark(path, ["macc.cbfc.enbv", *times])
    assert [number(value) for value in xoff.values() if value] == [0x08, 0xFFFF, 0]
    assert [number(value) for value in xon.values() if value] == [0x28, 0, 7]


@pytest.mark.parametrize("low_bits", range(4))
def test_credits_are_never_malformed(tmp_path: Path, low_bits: int) -> None:
    """For any low bits of FCTBS, which tshark first takes for an LNH."""
    path = tmp_path / "capture"
    credits = bytes(FlowControl(vl=2, fctbs=0xAB0 | low_bits, fccl=0x7FF))
    path.write_bytes(
        files.pcapng([erf.flow_control_record(credits, time_ns=0)], linktype=LinkType.ERF)
    )
    fields = ["op", "vl", "fctbs", "fccl", "lpcrc"]
    (row,) = tshark(path, [f"infiniband_link.{name}" for name in fields])
    packet = FlowControl(credits)
    assert [number(value) for value in list(row.values())[:5]] == [
        packet.op,
        packet.vl,
        packet.fctbs,
        packet.fccl,
        int.from_bytes(packet.lpcrc, "big"),
    ]
    assert row[MALFORMED] == ""


def test_malformed_packets_are_detected(tmp_path: Path) -> None:
    """tshark 4.0 calls a record of six bytes malformed, so the padding is needed."""
    path = tmp_path / "capture"
    padded = erf.flow_control_record(bytes.fromhex("012324566a84"), time_ns=0)
    bare = padded[:10] + bytes([0, 24, 0, 0, 0, 6]) + padded[16:22]
    path.write_bytes(files.pcapng([bare], linktype=LinkType.ERF))
    (row,) = tshark(path, [])
    assert row[MALFORMED] != ""


@pytest.mark.parametrize("family", ["roce", "ib"])
def test_tshark_reads_converted_captures(tmp_path: Path, family: str) -> None:
    """Interface names, directions, packet ids and emulated nanoseconds."""
    ack = BTH(opcode=Opcode.RC_ACKNOWLEDGE) / AETH()
    if family == "roce":
        kinds = (RawKind.ETHERNET, RawKind.ETHERNET)
        frames = (bytes(CARRIERS["ipv4"] / cnp(5)), bytes(pfc({3: 9})))
    else:
        kinds = (RawKind.IB, RawKind.IB_LINK)
        frames = (bytes(CARRIERS["ib-local"] / ack), bytes(FlowControl(vl=1)))
    raw = tmp_path / "raw"
    raw.write_bytes(
        files.raw_capture(
            [
                (4, 1_234_567_000, kinds[0], Direction.IN, frames[0]),
                (4, 5_000_000_000_001, kinds[1], Direction.OUT, frames[1]),
            ]
        )
    )
    framing = FABRIC_KINDS[family].framing
    rates = {"leaf1:h1": 100_000_000_000}
    path = convert(raw, tmp_path, {4: "leaf1:h1"}, rates, framing)["leaf1:h1"]
    fields = ["frame.interface_name", "frame.time_epoch", "frame.packet_flags_direction"]
    rows = tshark(path, [*fields, "frame.packet_id"])
    assert [list(row.values()) for row in rows] == [
        ["leaf1:h1", "0.001234567", "0x00000001", "0", ""],
        ["leaf1:h1", "5.000000000", "0x00000002", "1", ""],
    ]


def test_bare_erf_records_make_a_file(tmp_path: Path) -> None:
    """Padded records, one after another, are an ERF file for other tools."""
    path = tmp_path / "bare.erf"
    packet = erf.packet_record(bytes(CARRIERS["ib-local"] / BTH() / b"abc"), time_ns=1001)
    credits = erf.flow_control_record(bytes(FlowControl()), time_ns=2002)
    path.write_bytes(erf.padded(packet) + erf.padded(credits))
    rows = tshark(path, ["frame.time_epoch", "erf.types.type"])
    assert [list(row.values()) for row in rows] == [
        ["0.000001001", "21", ""],
        ["0.000002002", "25", ""],
    ]
