"""The counts of `inspect`, in captures of the emulator and of other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, CookedLinux, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw

from emu.cli.inspect import command
from emu.wire import erf
from emu.wire.capture import LinkType
from emu.wire.inspect import inspect, syndrome_name
from emu.wire.inspection import Inspection
from emu.wire.layers import (
    AETH,
    BTH,
    DETH,
    GRH,
    LRH,
    RETH,
    FlowControl,
    Opcode,
    cnp,
    pfc,
)
from tests.support import capture_files as files

SEND = BTH(opcode=Opcode.RC_SEND_ONLY, dest_qp=3) / b"data"
HOSTS = IP(src="10.0.0.1", dst="10.0.0.2")


def inspected(
    tmp_path: Path, frames: Sequence[Packet | bytes], *, linktype: int = LinkType.ETHERNET
) -> Inspection:
    path = tmp_path / "capture"
    path.write_bytes(files.pcapng([bytes(frame) for frame in frames], linktype=linktype))
    return inspect(path)


def roce(*packets: Packet) -> list[Packet]:
    return [Ether() / HOSTS / UDP() / packet for packet in packets]


def native(*packets: Packet) -> list[bytes]:
    return [
        erf.flow_control_record(bytes(packet), time_ns=0)
        if FlowControl in packet
        else erf.packet_record(bytes(packet), time_ns=0)
        for packet in packets
    ]


def spoilt(packet: Packet, offset: int) -> bytes:
    """The packet with one bit changed."""
    frame = bytearray(bytes(packet))
    frame[offset] ^= 1
    return bytes(frame)


def test_opcodes_and_icrcs_are_counted(tmp_path: Path) -> None:
    """By name; as valid, invalid, or not verifiable."""
    good, bad = roce(SEND)[0], spoilt(roce(SEND)[0], -1)
    found = inspected(tmp_path, [good, good, bad, bytes(good)[:-1], *roce(cnp(3))])
    assert found.opcodes == {"RC_SEND_ONLY": 4, "CNP": 1}
    assert found.icrc.to_json() == {"ok": 3, "bad": 1, "unchecked": 1}
    assert found.cnp == 1


def test_ecn_is_counted(tmp_path: Path) -> None:
    """By the two bits of IPv4 and of IPv6."""
    ipv4 = [Ether() / IP(tos=26 << 2 | ecn) / UDP() / SEND for ecn in (0, 1, 2, 3, 3)]
    ipv6 = [Ether() / IPv6(tc=26 << 2 | ecn) / UDP() / SEND for ecn in (2, 3)]
    found = inspected(tmp_path, ipv4 + ipv6)
    assert found.ecn == {"not_ect": 1, "ect1": 1, "ect0": 2, "ce": 3}
    assert found.to_json()["ce_marked"] == 3
    assert found.icrc.ok == 7


def test_pause_frames_are_counted_by_class(tmp_path: Path) -> None:
    """XOFF with quanta, XON without; an 802.3x pause is global."""
    global_pause = Ether(dst="01:80:c2:00:00:01", type=0x8808) / bytes.fromhex("0001ffff")
    found = inspected(tmp_path, [pfc({3: 9, 4: 0}), pfc({3: 0}), global_pause])
    assert found.pause_frames == 3
    assert found.xoff == {"prio3": 1, "global": 1}
    assert found.xon == {"prio3": 1, "prio4": 1}


def test_vcrc_and_lpcrc_are_checked(tmp_path: Path) -> None:
    """The VCRC covers packets of either kind, the LPCRC credits."""
    good = [LRH() / SEND, LRH() / GRH() / SEND, FlowControl(vl=2), FlowControl(vl=2)]
    bad = [LRH(vcrc=b"xx") / SEND, FlowControl(vl=5, lpcrc=b"xx")]
    found = inspected(tmp_path, native(*good, *bad), linktype=LinkType.ERF)
    assert found.vcrc.to_json() == {"ok": 2, "bad": 1, "unchecked": 0}
    assert found.icrc.to_json() == {"ok": 3, "bad": 0, "unchecked": 0}
    assert found.lpcrc.to_json() == {"ok": 2, "bad": 1, "unchecked": 0}
    assert found.credit_updates == {"vl2": 2, "vl5": 1}


def test_raw_infiniband_link_type_is_read(tmp_path: Path) -> None:
    """Link type 247 begins with the LRH; a packet without VCRC is not checked."""
    packet = LRH() / SEND
    found = inspected(tmp_path, [packet, bytes(packet)[:-2]], linktype=LinkType.INFINIBAND)
    assert found.icrc.ok == 2
    assert found.vcrc.to_json() == {"ok": 1, "bad": 0, "unchecked": 1}


def test_roce_v1_is_read(tmp_path: Path) -> None:
    """Ethertype 0x8915, then a GRH."""
    found = inspected(tmp_path, [Ether() / GRH(sgid="::1", dgid="::2") / SEND])
    assert found.carriers == {"RoCEv1": 1}
    assert found.icrc.ok == 1


def test_other_implementations_captures_are_read(tmp_path: Path) -> None:
    """VLAN tags, stacked tags, IP options, IPv6 extensions, low source ports."""
    udp = UDP(sport=72) / SEND
    found = inspected(
        tmp_path,
        [
            Ether() / Dot1Q(vlan=5, prio=3) / HOSTS / udp,
            Ether() / Dot1AD(vlan=7) / Dot1Q(vlan=5) / HOSTS / udp,
            Ether() / IP(options=[IPOption_NOP()] * 4) / udp,
            Ether() / IPv6() / IPv6ExtHdrDestOpt() / udp,
        ],
    )
    assert found.icrc.to_json() == {"ok": 4, "bad": 0, "unchecked": 0}
    assert (found.vlan_tagged, found.vlan_stacked) == (2, 1)
    assert (found.ip_options, found.low_source_ports) == (2, 4)


@pytest.mark.parametrize(
    ("linktype", "below"),
    [
        (LinkType.LINUX_SLL, CookedLinux(proto=0x0800)),
        (LinkType.LINUX_SLL2, Raw(b"\x08\x00" + bytes(18))),
        (LinkType.RAW, None),
        (LinkType.IPV4, None),
    ],
)
def test_cooked_captures_are_read(tmp_path: Path, linktype: int, below: Packet | None) -> None:
    """As `tcpdump -i any` makes them, or with IP first."""
    packet = HOSTS / UDP() / SEND
    frame = bytes(below) + bytes(packet) if below else bytes(packet)
    found = inspected(tmp_path, [frame], linktype=linktype)
    assert found.icrc.ok == 1


def test_truncated_frame_is_counted_as_truncated(tmp_path: Path) -> None:
    """Never as valid or invalid, wherever it is cut."""
    frame = bytes(roce(BTH(opcode=Opcode.RC_RDMA_WRITE_ONLY) / RETH() / bytes(64))[0])
    path = tmp_path / "capture"
    cuts = [frame[:length] for length in range(len(frame))]
    path.write_bytes(files.pcapng(cuts, original_length=len(frame)))
    found = inspect(path)
    assert found.truncated == found.frames == len(frame)
    assert (found.icrc.ok, found.icrc.bad) == (0, 0)
    assert found.opcodes["RC_RDMA_WRITE_ONLY"] == len(frame) - (14 + 20 + 8 + 12)


def test_fragments_are_counted(tmp_path: Path) -> None:
    """The ICRC of a fragment cannot be checked; later fragments do not even have a BTH."""
    first = Ether() / IP(flags="MF") / UDP() / SEND
    later = Ether() / IP(frag=10, proto=17) / bytes(40)
    ipv6 = Ether() / IPv6() / IPv6ExtHdrFragment(m=1) / UDP() / SEND
    ipv6_later = Ether() / IPv6() / IPv6ExtHdrFragment(offset=9, nh=17) / bytes(40)
    found = inspected(tmp_path, [first, later, ipv6, ipv6_later])
    assert found.fragments == 4
    assert found.icrc.to_json() == {"ok": 0, "bad": 0, "unchecked": 2}
    assert found.other == {"later fragment of UDP": 2}


def test_other_traffic_is_counted_by_its_kind(tmp_path: Path) -> None:
    """None of it is taken for RoCE."""
    frames: list[Packet | bytes] = [
        Ether() / ARP(),
        Ether() / IP() / TCP(),
        Ether() / IP() / ICMP(),
        Ether() / IP() / UDP(dport=53) / b"x",
        Ether() / IP() / UDP(dport=4791) / Raw(b"x"),
        Ether(type=0x1234) / b"x",
        Ether(type=0x0040) / b"x",
        Ether(type=0x8808) / b"\0\5",
        b"x",
    ]
    found = inspected(tmp_path, frames)
    assert found.other == {
        "ARP": 1,
        "TCP": 1,
        "ICMP": 1,
        "UDP": 1,
        "UDP 4791, too short for RoCE": 1,
        "ethertype 0x1234": 1,
        "LLC": 1,
        "MAC control 0x0005": 1,
        "cut short in Ethernet": 1,
    }


def test_undefined_opcodes_are_counted_by_number(tmp_path: Path) -> None:
    """Their ICRC is checked nevertheless."""
    found = inspected(tmp_path, roce(BTH(opcode=0xFE) / b"data"))
    assert found.opcodes == {"opcode 0xfe": 1}
    assert found.icrc.ok == 1


def test_psn_gaps_and_repeats_are_counted_by_flow(tmp_path: Path) -> None:
    """In requests only: PSNs of acknowledgements, responses, datagrams and CNPs do not form a
    sequence."""
    frames = roce(
        *(BTH(opcode=Opcode.RC_SEND_MIDDLE, dest_qp=7, psn=psn) / b"data" for psn in (1, 2, 5, 4)),
        BTH(opcode=Opcode.UC_SEND_ONLY, dest_qp=8, psn=100) / b"data",
        BTH(opcode=Opcode.RC_ACKNOWLEDGE, dest_qp=7, psn=50) / AETH(),
        BTH(opcode=Opcode.RC_RDMA_READ_RESPONSE_ONLY, dest_qp=7, psn=60) / AETH() / b"data",
        BTH(opcode=Opcode.UD_SEND_ONLY, dest_qp=1, psn=9) / DETH() / b"data",
        cnp(7),
    )
    found = inspected(tmp_path, frames)
    assert found.psn_totals() == (1, 2, 1)
    first, second = found.to_json()["flows"]
    assert first == {
        "interface": "leaf1:h1",
        "src": "10.0.0.1",
        "dst": "10.0.0.2",
        "dest_qp": 7,
        "packets": 4,
        "gaps": 1,
        "missing": 2,
        "repeats": 1,
    }
    assert (second["dest_qp"], second["gaps"]) == (8, 0)


def test_acknowledgements_are_counted_by_syndrome(tmp_path: Path) -> None:
    """Plain ones with credits or without, RNR NAKs, NAKs by reason."""
    syndromes = (0x1F, 0x06, 0x2C, 0x60, 0x62, 0x5F)
    found = inspected(
        tmp_path,
        roce(*(BTH(opcode=Opcode.RC_ACKNOWLEDGE) / AETH(syndrome=s) for s in syndromes)),
    )
    assert found.acknowledgements == {
        "ACK": 2,
        "RNR NAK": 1,
        "NAK PSN sequence error": 1,
        "NAK remote access error": 1,
        "reserved 0x5f": 1,
    }


def test_every_syndrome_has_a_name() -> None:
    """Also the reserved ones."""
    assert all(syndrome_name(syndrome) for syndrome in range(256))


def test_json_is_one_document(tmp_path: Path) -> None:
    """With its schema's name, and nothing else on stdout."""
    path = tmp_path / "capture.pcapng"
    path.write_bytes(files.pcapng(bytes(frame) for frame in roce(SEND)) + b"tail")
    result = CliRunner().invoke(command, [str(path), "--json"])
    document = json.loads(result.stdout)
    assert (document["schema"], document["frames"]) == ("emu.inspect/1", 1)
    assert "too early" in document["damage"]


def test_text_is_lines_when_piped(tmp_path: Path) -> None:
    """Section, name and value, separated by tabs; damage goes to stderr."""
    path = tmp_path / "capture.pcapng"
    frames = [*roce(SEND, BTH(opcode=4, psn=9)), pfc({3: 5})]
    path.write_bytes(files.pcapng(bytes(frame) for frame in frames) + b"tail")
    result = CliRunner().invoke(command, [str(path)])
    assert "opcode\tRC_SEND_ONLY\t2\n" in result.stdout
    assert "checksum\tICRC ok\t2\n" in result.stdout
    assert "pause\tprio3 XOFF\t1\n" in result.stdout
    assert "too early; counted up to there" in result.stderr
