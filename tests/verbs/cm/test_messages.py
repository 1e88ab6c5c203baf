"""The messages of connection management: read and written, and as tshark reads them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from emu.errors import RemoteProtocolError
from emu.verbs.cm.ip_service import Endpoint, IpHeader, PortSpace, service_id, service_of
from emu.verbs.cm.mad import MAD_BYTES, Attribute, Mad
from emu.verbs.cm.messages import Message, build, parse
from emu.wire.layers import BTH, DETH, LRH
from emu.wire.opcodes import Opcode
from tests.support.cm_pairs import CLIENT, MESSAGES, PORT, REQ, SERVER
from tests.support.tshark import MALFORMED, number, tshark, write

EACH = pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
CARRIERS: dict[str, Packet] = {
    "roce": Ether(dst="02:00:0a:00:00:02", src="02:00:0a:00:00:01")
    / IP(src="10.0.0.1", dst="10.0.0.2")
    / UDP(),
    "ib": LRH(slid=1, dlid=2),
}
NAMES = {
    "REQ": "ConnectRequest",
    "REP": "ConnectReply",
    "RTU": "ReadyToUse",
    "REJ": "ConnectReject",
    "DREQ": "DisconnectRequest",
    "DREP": "DisconnectReply",
    "SIDR_REQ": "ServiceIDResReq",
    "SIDR_REP": "ServiceIDResReqResp",
}
FIELDS = {
    "ca_guid": "infiniband.cm.req.localcaguid",
    "qpn": "infiniband.cm.req.localqpn",
    "responder_resources": "infiniband.cm.req.responderres",
    "initiator_depth": "infiniband.cm.req.initdepth",
    "psn": "infiniband.cm.req.startpsn",
    "retry_count": "infiniband.cm.req.retrcount",
    "rnr_retry_count": "infiniband.cm.req.rnrretrcount",
    "pkey": "infiniband.cm.req.pkey",
    "traffic_class": "infiniband.cm.req.prim_tfcclass",
    "hop_limit": "infiniband.cm.req.prim_hoplim",
    "local_lid": "infiniband.cm.req.prim_locallid",
    "remote_lid": "infiniband.cm.req.prim_remotelid",
    "transport": "infiniband.cm.req.transpsvctype",
    "response_timeout": "infiniband.cm.req.remoteresptout",
    "flow_control": "infiniband.cm.req.e2eflowctrl",
    "srq": "infiniband.cm.req.srq",
    "sl": "infiniband.cm.req.prim_sl",
    "ack_timeout": "infiniband.cm.req.prim_localacktout",
}
needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="needs tshark: apt-get install tshark"
)


def datagram(message: Message, carrier: str) -> Packet:
    header = BTH(opcode=Opcode.UD_SEND_ONLY, dest_qp=1) / DETH(q_key=0x80010000, src_qp=1)
    return CARRIERS[carrier] / header / build(message, transaction=77)


@EACH
def test_message_is_read_as_it_was_written(message: Message) -> None:
    packet = build(message, transaction=77)
    mad = Mad.parse(packet)
    assert len(packet) == MAD_BYTES
    assert mad.transaction == 77
    assert parse(mad) == message


@EACH
def test_private_data_fills_the_message(message: Message) -> None:
    assert len(message.private_data) == message.private_bytes
    assert len(message.build()) == 232


@needs_tshark
@pytest.mark.parametrize("carrier", CARRIERS)
def test_tshark_names_each_message(carrier: str, tmp_path: Path) -> None:
    path = tmp_path / "cm.pcapng"
    write(path, [datagram(message, carrier) for message in MESSAGES.values()])
    rows = tshark(path, ["infiniband.mad.attributeid", "_ws.col.Info"])
    assert [row[MALFORMED] for row in rows] == [""] * len(MESSAGES)
    for (name, message), row in zip(MESSAGES.items(), rows, strict=True):
        assert number(row["infiniband.mad.attributeid"]) == message.attribute
        assert NAMES[name] in row["_ws.col.Info"]


@needs_tshark
def test_tshark_finds_the_fields_of_a_request(tmp_path: Path) -> None:
    path = tmp_path / "cm.pcapng"
    write(path, [datagram(REQ, "roce")])
    (row,) = tshark(path, list(FIELDS.values()))
    found = {name: number(row[field]) for name, field in FIELDS.items()}
    assert found == {name: getattr(REQ, name) for name in FIELDS}


def test_service_ids_are_those_of_linux() -> None:
    """rdma_cma.h: RDMA_IB_IP_PS_TCP and RDMA_IB_IP_PS_UDP."""
    assert service_id(PortSpace.TCP, 7174) == 0x0000_0000_0106_1C06
    assert service_id(PortSpace.UDP, 1) == 0x0000_0000_0111_0001
    assert service_of(0x0000_0000_0106_1C06) == (PortSpace.TCP, PORT)
    assert service_of(0x0000_0000_013F_0000) is None


def test_ip_header_holds_both_addresses() -> None:
    header = IpHeader(Endpoint(CLIENT, 40_000), SERVER)
    assert header.build().hex() == ("00409c40" + "00" * 12 + "0a000001" + "00" * 12 + "0a000002")
    assert IpHeader.parse(header.build()) == header


def test_ipv6_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="IP version 6"):
        IpHeader.parse(b"\x00\x60".ljust(36, b"\0"))


@pytest.mark.parametrize(("at", "value"), [(0, 2), (1, 3), (2, 1), (3, 1), (17, 0x77)], ids=str)
def test_other_datagrams_are_refused(at: int, value: int) -> None:
    """Another version, class, class version, method or attribute."""
    packet = bytearray(build(REQ, 1))
    packet[at] = value
    with pytest.raises(RemoteProtocolError, match="nobody here answers"):
        Mad.parse(bytes(packet))


def test_short_datagram_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="255 bytes"):
        Mad.parse(build(REQ, 1)[:-1])


def test_mra_is_not_understood() -> None:
    assert parse(Mad(Attribute.MRA, 1, bytes(232))) is None


@pytest.mark.parametrize("transport", [2, 3])
def test_request_for_another_transport_is_refused(transport: int) -> None:
    data = bytearray(REQ.build())
    data[43] = data[43] & 0xF9 | transport << 1
    with pytest.raises(RemoteProtocolError, match=f"transport {transport}"):
        parse(Mad(Attribute.REQ, 1, bytes(data)))
