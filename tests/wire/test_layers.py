"""The scapy layers: known packets in both directions, every opcode, and truncation of every
header."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from emu.errors import RemoteProtocolError
from emu.wire import crc
from emu.wire.capture import Kind, LinkType, Record
from emu.wire.layers import AETH, BTH, GRH, LRH, RETH, FlowControl, ImmDt, cnp, pfc
from emu.wire.layers.dissect import dissect
from emu.wire.layers.transport import LAYER_OF
from emu.wire.opcodes import EXTENSION_BYTES, EXTENSIONS, Opcode
from tests.support import known_packets as vectors

CAPTURED_AS = {
    Ether: (Kind.ETHERNET, LinkType.ETHERNET),
    IP: (Kind.COOKED, LinkType.IPV4),
    IPv6: (Kind.COOKED, LinkType.IPV6),
    LRH: (Kind.IB, LinkType.INFINIBAND),
}
HEADERS: list[type[Packet]] = [*LAYER_OF.values(), BTH, GRH, LRH, FlowControl]


def _first_layer(vector: vectors.Vector) -> type[Packet]:
    return type(vector.layers)


@pytest.mark.parametrize("vector", vectors.ALL, ids=lambda v: v.name)
def test_known_packets_are_built(vector: vectors.Vector) -> None:
    """From layers to bytes, with pad, lengths, ICRC and VCRC computed."""
    assert bytes(vector.layers) == vector.frame


@pytest.mark.parametrize("vector", vectors.ALL, ids=lambda v: v.name)
def test_known_packets_are_dissected(vector: vectors.Vector) -> None:
    """From bytes to the same layers and fields, and back to the same bytes."""
    dissected = _first_layer(vector)(vector.frame)
    assert bytes(dissected) == vector.frame
    layer = vector.layers
    while layer and not isinstance(layer, Raw):
        for name, value in layer.fields.items():
            assert dissected[type(layer)].getfieldval(name) == value, name
        layer = layer.payload


@pytest.mark.parametrize("vector", vectors.WITH_ICRC, ids=lambda v: v.name)
def test_deleted_checksums_are_computed_again(vector: vectors.Vector) -> None:
    """As scapy does for other layers, also for fields after the payload."""
    packet = _first_layer(vector)(vector.frame)
    packet[BTH].psn += 1
    assert bytes(packet) != vector.frame
    packet[BTH].psn -= 1
    del packet[BTH].icrc
    if LRH in packet:
        del packet[LRH].vcrc
    assert bytes(packet) == vector.frame


@pytest.mark.parametrize("opcode", Opcode, ids=lambda o: o.name)
@pytest.mark.parametrize("below", [LRH(slid=1, dlid=2), IP() / UDP()], ids=["ib", "roce"])
def test_every_opcode_has_its_headers(opcode: Opcode, below: Packet) -> None:
    """A packet built with an opcode's headers is dissected into them, in order, then the
    payload."""
    packet = below / BTH(opcode=opcode, dest_qp=0x123456, psn=7)
    for extension in EXTENSIONS[opcode]:
        packet = packet / LAYER_OF[extension]()
    frame = bytes(packet / b"payload")
    layers = [type(layer) for layer in _layers(type(below)(frame)[BTH].payload)]
    assert layers == [LAYER_OF[extension] for extension in EXTENSIONS[opcode]] + [Raw]
    assert type(below)(frame)[Raw].load == b"payload"


def _layers(packet: Packet) -> list[Packet]:
    return [packet, *_layers(packet.payload)] if packet else []


def test_immediate_comes_after_reth() -> None:
    """WRITE Only with Immediate carries RETH first, then ImmDt."""
    packet = IP() / UDP() / BTH(opcode=Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE)
    packet = IP(bytes(packet / RETH(dma_len=3) / ImmDt(immediate=0xCAFE) / b"abc"))
    assert (packet[RETH].dma_len, packet[ImmDt].immediate, packet[Raw].load) == (3, 0xCAFE, b"abc")


@pytest.mark.parametrize("length", range(9))
def test_pad_fills_up_to_four_bytes(length: int) -> None:
    """Zero to three zero bytes, which the BTH counts, and which are not part of the payload."""
    packet = IP(bytes(IP() / UDP() / BTH() / bytes(range(1, length + 1))))
    assert packet[BTH].pad_count == -length % 4
    assert packet[BTH].pad == bytes(-length % 4)
    assert len(packet[BTH].payload) == length


def test_lengths_are_computed() -> None:
    """PktLen counts words from LRH to ICRC, PayLen bytes from the GRH's end to the ICRC."""
    packet = LRH(bytes(LRH() / GRH() / BTH() / b"hello"))
    assert packet.pktlen == (8 + 40 + 12 + 8 + 4) // 4
    assert packet[GRH].paylen == 12 + 8 + 4
    assert packet.lnh == 3


def test_explicit_fields_are_kept() -> None:
    """A test can make a wrong ICRC, VCRC, pad or length on purpose."""
    packet = LRH(pktlen=9, vcrc=b"xy") / BTH(pad_count=2, pad=b"zz", icrc=b"abcd") / b"12"
    frame = bytes(packet)
    assert frame[20:] == b"12zzabcdxy"
    assert (frame[5], frame[9] >> 4 & 3) == (9, 2)


@pytest.mark.parametrize("header", HEADERS, ids=lambda h: h.__name__)
def test_header_sizes_match_the_wire(header: type[Packet]) -> None:
    """The size for truncation checks is the size on the wire, without trailers."""
    trailers: dict[type[Packet], int] = {BTH: 4, LRH: 2, FlowControl: 2}
    assert len(bytes(header())) == header.size + trailers.get(header, 0)


def test_opcode_table_agrees_with_the_layers() -> None:
    """`EXTENSION_BYTES`, which needs no scapy, has the sizes of the layers."""
    assert {e: LAYER_OF[e].size for e in EXTENSION_BYTES} == EXTENSION_BYTES


@pytest.mark.parametrize("header", HEADERS, ids=lambda h: h.__name__)
def test_truncated_header_is_refused(header: type[Packet]) -> None:
    """On its own it raises the error that blames the sender."""
    whole = bytes(header())
    for length in range(1, header.size):
        with pytest.raises(RemoteProtocolError, match=f"{header.size} bytes, only {length} are"):
            header(whole[:length])


@pytest.mark.parametrize("vector", vectors.ALL, ids=lambda v: v.name)
def test_truncated_frame_is_rebuilt(vector: vectors.Vector) -> None:
    """Wherever it is cut, dissection succeeds and building gives the same bytes back."""
    kind, linktype = CAPTURED_AS[type(vector.layers)]
    for length in range(1, len(vector.frame) + 1):
        frame = vector.frame[:length]
        assert bytes(dissect(Record(0, kind, linktype, frame, length, ""))) == frame


def test_truncated_frame_has_no_icrc() -> None:
    """The last four captured bytes are not taken for an ICRC."""
    frame = bytes(IP() / UDP() / BTH(opcode=Opcode.RC_SEND_MIDDLE) / bytes(range(100)))
    packet = IP(frame[:80])
    assert packet[BTH].icrc == b""
    assert packet[Raw].load == bytes(range(40))


def test_ethernet_padding_is_not_payload() -> None:
    """A short RoCEv1 or RoCEv2 frame padded to 60 bytes has its ICRC where its length says."""
    for packet in (Ether() / IP() / UDP() / BTH() / b"ab", Ether() / GRH() / BTH() / b"ab"):
        frame = bytes(packet)
        padded = Ether(frame + b"\x55" * 6)
        assert padded[BTH].icrc == frame[-4:]
        assert padded[Raw].load == b"ab"
        assert bytes(padded) == frame + b"\x55" * 6


def test_vlan_tags_do_not_change_the_icrc() -> None:
    """The ICRC is that of the untagged packet."""
    ip = IP() / UDP() / BTH() / b"data"
    tagged = Ether(bytes(Ether() / Dot1Q(vlan=5, prio=3) / Dot1Q(vlan=6) / ip))
    assert tagged[BTH].icrc == bytes(ip)[-4:]


@pytest.mark.parametrize("sport", [53, 69, 72, 67, 4791, 0xC000])
def test_low_source_port_is_accepted(sport: int) -> None:
    """Real NICs use low ports too, which scapy would take for DNS or TFTP."""
    assert AETH in IP(bytes(IP() / UDP(sport=sport) / BTH(opcode=Opcode.RC_ACKNOWLEDGE) / AETH()))


def test_udp_header_is_that_of_nics() -> None:
    """Port 4791, a source port of the dynamic range, no checksum, over IPv6 as well."""
    for below in (IP(), IPv6()):
        udp = type(below)(bytes(below / UDP() / BTH()))[UDP]
        assert (udp.sport, udp.dport, udp.chksum) == (0xC000, 4791, 0)


def test_flow_control_packet_round_trips() -> None:
    """With its LPCRC computed."""
    frame = bytes(FlowControl(op=0, fctbs=0x123, vl=2, fccl=0x456))
    assert frame == bytes.fromhex("01232456" + "6a84")
    packet = FlowControl(frame)
    assert (packet.op, packet.fctbs, packet.vl, packet.fccl) == (0, 0x123, 2, 0x456)
    assert bytes(packet) == frame


def test_pfc_frame_resumes_with_zero_quanta() -> None:
    """A class that is enabled with time 0 is an XON; others are not in the vector."""
    frame = bytes(pfc({0: 0, 7: 5}))
    assert len(frame) == 60
    assert frame[14:18].hex() == "01010081"
    assert frame[18:34].hex() == "0000" * 7 + "0005"


@pytest.mark.parametrize("bad", [{8: 1}, {-1: 1}, {3: 0x10000}, {3: -1}])
def test_pfc_frame_refuses_bad_priority_or_quanta(bad: dict[int, int]) -> None:
    """Values that do not fit the frame."""
    with pytest.raises(ValueError, match="cannot be"):
        pfc(bad)


def test_cnp_is_for_the_sender_of_the_data() -> None:
    """BECN 1, MigReq 0, sixteen reserved bytes."""
    packet = IP(bytes(IP() / UDP() / cnp(0xD2)))
    assert (packet[BTH].opcode, packet[BTH].becn, packet[BTH].m) == (0x81, 1, 0)
    assert len(packet[BTH].payload) == 16


def test_bth_alone_has_no_computed_icrc() -> None:
    """The ICRC covers headers that are missing: the field is four zeros."""
    assert bytes(BTH())[-crc.ICRC_BYTES :] == bytes(4)


@pytest.mark.parametrize("order", ["ours, theirs", "theirs, ours"])
def test_own_layers_precede_scapys_contrib(order: str) -> None:
    """With scapy.contrib.roce imported before or after, dissection gives the project's layers."""
    imports = {"ours": "import emu.wire.layers", "theirs": "import scapy.contrib.roce"}
    program = "\n".join(
        [
            *(imports[name] for name in order.split(", ")),
            "from scapy.layers.inet import IP, UDP",
            "from scapy.layers.l2 import Ether",
            f"frame = bytes.fromhex('{vectors.REAL_ROCE_ACK.frame.hex()}')",
            "assert type(Ether(frame)[UDP].payload) is emu.wire.layers.BTH",
            "built = IP() / UDP() / scapy.contrib.roce.BTH(opcode=0x11)",
            "assert IP(bytes(built))[UDP].dport == 4791",
        ]
    )
    subprocess.run([sys.executable, "-c", program], check=True)
