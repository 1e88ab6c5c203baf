"""Finds the frame in a record of a capture file, by link type, and removes ERF headers."""

from __future__ import annotations

from dataclasses import replace

from emu.wire import erf
from emu.wire.capture import Kind, LinkType, Record
from emu.wire.erf import ErfType

_KINDS: dict[int, Kind] = {
    LinkType.ETHERNET: Kind.ETHERNET,
    LinkType.INFINIBAND: Kind.IB,
    LinkType.LINUX_SLL: Kind.COOKED,
    LinkType.LINUX_SLL2: Kind.COOKED,
    LinkType.RAW: Kind.COOKED,
    LinkType.RAW_BSD: Kind.COOKED,
    LinkType.RAW_OPENBSD: Kind.COOKED,
    LinkType.IPV4: Kind.COOKED,
    LinkType.IPV6: Kind.COOKED,
}

_ERF_ETHERNET_OFFSET = 2


def kind_of(linktype: int) -> Kind:
    return _KINDS.get(linktype, Kind.OTHER)


def unwrap(record: Record) -> Record | None:
    """The frame inside an ERF record. Other records are returned unchanged.

    None for ERF records without a frame (padding, metadata). A record whose ERF header
    is cut short has kind OTHER.
    """
    if record.linktype != LinkType.ERF:
        return record
    if len(record.data) < erf.HEADER.size:
        return replace(record, kind=Kind.OTHER)
    _, flagged_type, _, _, _, wlen = erf.HEADER.unpack_from(record.data)
    erf_type = flagged_type & erf.TYPE_MASK
    if erf_type in (ErfType.PAD, ErfType.META):
        return None
    payload = record.data[_payload_offset(record.data) :]
    if erf_type == ErfType.INFINIBAND:
        return replace(record, kind=Kind.IB, data=payload[:wlen], original_length=wlen)
    if erf_type == ErfType.INFINIBAND_LINK:
        size = erf.FLOW_CONTROL_BYTES
        return replace(record, kind=Kind.IB_LINK, data=payload[:size], original_length=size)
    if erf_type in erf.ETHERNET_TYPES:
        frame = payload[_ERF_ETHERNET_OFFSET:][:wlen]
        return replace(record, kind=Kind.ETHERNET, data=frame, original_length=wlen)
    return replace(record, kind=Kind.OTHER, data=payload[:wlen], original_length=wlen)


def _payload_offset(data: bytes) -> int:
    """Where the payload begins: after the header and its extension headers."""
    offset = erf.HEADER.size
    extended = data[erf.TYPE_OFFSET] & erf.EXTENSION_FLAG
    while extended and offset < len(data):
        extended = data[offset] & erf.EXTENSION_FLAG
        offset += erf.EXTENSION_BYTES
    return offset
