"""Counts what a capture holds, and checks ICRC, VCRC and LPCRC, which Wireshark does not.

    print(inspect(Path("leaf1-h1.pcapng")).to_json())

It works on any capture that `reader.py` reads. Nothing in a frame is trusted: headers
that are cut short or invalid are counted as such.

Frames are counted once for each interface. In a file with several interfaces, a packet
is counted at each interface where it was captured.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from struct import Struct

from emu.wire import crc
from emu.wire.capture import Kind, Record
from emu.wire.inspection import ECN_NAMES, FlowKey, Inspection
from emu.wire.locate import (
    ETHERTYPE_MAC_CONTROL,
    CutShort,
    NetworkPacket,
    Other,
    TransportPacket,
    expected_icrc,
    find_native_transport,
    find_transport,
    ib_packet_bytes,
    network_packet,
)
from emu.wire.opcodes import (
    ACKNOWLEDGE,
    BTH_BYTES,
    OPCODE_NAMES,
    OPERATION_MASK,
    RDMA_READ_REQUEST,
    RESPONSES,
    TRANSPORT_MASK,
    Extension,
    Transport,
    extension_offset,
)
from emu.wire.psn import PsnSequence
from emu.wire.reader import open_capture

_BTH = Struct(">BxHII")
_QP_MASK = _PSN_MASK = 0xFFFFFF
_LOWEST_DYNAMIC_PORT = 0xC000

_PFC_OPCODE, _PAUSE_OPCODE = 0x0101, 0x0001
_PFC = Struct(">HH8H")
_PAUSE = Struct(">HH")
_OPCODE = Struct(">H")

_FLOW_CONTROL_FIELDS = 4

_NAK_NAMES = {
    0: "NAK PSN sequence error",
    1: "NAK invalid request",
    2: "NAK remote access error",
    3: "NAK remote operational error",
    4: "NAK invalid RD request",
}
_IN_ORDER = frozenset({Transport.RC, Transport.UC, Transport.XRC})
"""Transport classes in which the requests to a queue pair have consecutive PSNs."""


def inspect(path: Path) -> Inspection:
    """Reads a whole capture. Raises CaptureError for a file that is not a capture."""
    counts = Inspection(path)
    with open_capture(path) as capture:
        for record in capture:
            _count(counts, record)
        counts.damage = capture.damage
    return counts


def syndrome_name(syndrome: int) -> str:
    """The name of an AETH's syndrome (IBTA vol 1, 9.7.5.2)."""
    kind, code = syndrome >> 5, syndrome & 0x1F
    if kind == 0:
        return "ACK"
    if kind == 1:
        return "RNR NAK"
    if kind == 3 and code in _NAK_NAMES:
        return _NAK_NAMES[code]
    return f"reserved 0x{syndrome:02x}"


def _count(counts: Inspection, record: Record) -> None:
    counts.frames += 1
    counts.bytes += record.original_length
    counts.truncated += record.truncated
    counts.see_time(record.time_ns)
    if record.interface:
        counts.interfaces[record.interface] += 1
    try:
        _count_frame(counts, record)
    except CutShort as header:
        counts.other[f"cut short in {header}"] += 1


def _count_frame(counts: Inspection, record: Record) -> None:
    if record.kind is Kind.IB:
        _count_native(counts, record)
    elif record.kind is Kind.IB_LINK:
        _count_flow_control(counts, record.data)
    elif record.kind is Kind.OTHER:
        counts.other[f"link type {record.linktype}"] += 1
    else:
        packet = network_packet(record.linktype, record.data)
        counts.vlan_tagged += packet.vlan_tags > 0
        counts.vlan_stacked += packet.vlan_tags > 1
        _count_network(counts, record, packet)


def _count_network(counts: Inspection, record: Record, packet: NetworkPacket) -> None:
    if packet.ethertype == ETHERTYPE_MAC_CONTROL:
        _count_mac_control(counts, record.data[packet.offset :])
        return
    found = find_transport(record.data, packet)
    counts.fragments += found.fragment
    _count_found(counts, record, found)


def _count_native(counts: Inspection, record: Record) -> None:
    found = find_native_transport(record.data)
    end = ib_packet_bytes(record.data)
    vcrc = record.data[end : end + crc.VCRC_BYTES]
    counts.vcrc.count(vcrc, crc.vcrc(record.data[:end]) if vcrc else None)
    _count_found(counts, record, found)


def _count_found(counts: Inspection, record: Record, found: TransportPacket | Other) -> None:
    if isinstance(found, Other):
        counts.other[found.what] += 1
        return
    counts.carriers[found.carrier] += 1
    if found.ecn is not None:
        counts.ecn[ECN_NAMES[found.ecn]] += 1
    if found.source_port is not None:
        counts.low_source_ports += found.source_port < _LOWEST_DYNAMIC_PORT
    counts.ip_options += found.options
    icrc = record.data[found.end - crc.ICRC_BYTES : found.end]
    counts.icrc.count(icrc, expected_icrc(record.data, found))
    if len(record.data) < found.bth + BTH_BYTES:
        raise CutShort("BTH")
    _count_transport(counts, record, found)


def _count_transport(counts: Inspection, record: Record, found: TransportPacket) -> None:
    opcode, _, qp_word, psn_word = _BTH.unpack_from(record.data, found.bth)
    counts.opcodes[OPCODE_NAMES.get(opcode) or f"opcode 0x{opcode:02x}"] += 1
    if opcode not in OPCODE_NAMES:
        return
    operation = opcode & OPERATION_MASK
    if operation == ACKNOWLEDGE:
        aeth = _extension_word(record.data, found.bth, opcode, Extension.AETH, 0)
        if aeth is not None:
            counts.acknowledgements[syndrome_name(aeth >> 24)] += 1
    elif opcode & TRANSPORT_MASK in _IN_ORDER and operation not in RESPONSES:
        read_bytes = None
        if operation == RDMA_READ_REQUEST:
            read_bytes = _extension_word(record.data, found.bth, opcode, Extension.RETH, 12)
        sequence = counts.flows.setdefault(
            _flow_key(record, found, qp_word & _QP_MASK), PsnSequence()
        )
        sequence.see(psn_word & _PSN_MASK, read_bytes=read_bytes)


def _count_mac_control(counts: Inspection, data: bytes) -> None:
    if len(data) < _OPCODE.size:
        raise CutShort("MAC control")
    (opcode,) = _OPCODE.unpack_from(data)
    if opcode not in (_PFC_OPCODE, _PAUSE_OPCODE):
        counts.other[f"MAC control 0x{opcode:04x}"] += 1
        return
    if len(data) < (_PFC.size if opcode == _PFC_OPCODE else _PAUSE.size):
        raise CutShort("pause frame")
    counts.pause_frames += 1
    for name, quanta in _pauses(opcode, data):
        (counts.xoff if quanta else counts.xon)[name] += 1


def _pauses(opcode: int, data: bytes) -> list[tuple[str, int]]:
    """The name and the quanta of each class in a pause frame."""
    if opcode == _PAUSE_OPCODE:
        return [("global", _PAUSE.unpack_from(data)[1])]
    _, enabled, *quanta = _PFC.unpack_from(data)
    return [(f"prio{n}", quanta[n]) for n in range(8) if enabled >> n & 1]


def _count_flow_control(counts: Inspection, data: bytes) -> None:
    if len(data) < _FLOW_CONTROL_FIELDS:
        raise CutShort("flow-control packet")
    counts.credit_updates[f"vl{data[2] >> 4}"] += 1
    fields, lpcrc = data[:_FLOW_CONTROL_FIELDS], data[_FLOW_CONTROL_FIELDS:]
    counts.lpcrc.count(lpcrc, crc.lpcrc(fields))


def _extension_word(
    data: bytes, bth: int, opcode: int, extension: Extension, offset: int
) -> int | None:
    """32 bits of an extension header; None if they were not captured."""
    start = extension_offset(opcode, extension)
    if start is None or len(data) < bth + start + offset + 4:
        return None
    return int.from_bytes(data[bth + start + offset :][:4], "big")


def _flow_key(record: Record, found: TransportPacket, dest_qp: int) -> FlowKey:
    return FlowKey(record.interface, _address(found.src), _address(found.dst), dest_qp)


def _address(address: bytes) -> str:
    """The text of an IPv4 address, an IPv6 address or GID, or a LID, which differ in length."""
    if len(address) == 4:
        return str(IPv4Address(address))
    if len(address) == 16:
        return str(IPv6Address(address))
    return f"lid {int.from_bytes(address, 'big')}"
