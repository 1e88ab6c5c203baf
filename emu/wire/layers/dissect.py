"""Turns a captured record into scapy layers, for people who examine captures in Python.

    with open_capture(Path("leaf1-h1.pcapng")) as capture:
        for record in capture:
            dissect(record).show()

Building the layers again gives the captured bytes.
"""

from __future__ import annotations

from pathlib import Path

from scapy.config import conf
from scapy.packet import Packet, Raw
from scapy.utils import EDecimal

from emu.wire.capture import Kind, Record
from emu.wire.layers.link import LRH, FlowControl
from emu.wire.reader import open_capture

_NATIVE: dict[Kind, type[Packet]] = {Kind.IB: LRH, Kind.IB_LINK: FlowControl}


def dissect(record: Record) -> Packet:
    """The record's layers; Raw if the first header is incomplete."""
    first = _NATIVE.get(record.kind) or conf.l2types.num2layer.get(record.linktype, Raw)
    if not record.data:
        return Raw()  # from no bytes, scapy would make a layer with default values
    try:
        return first(record.data)
    except Exception:  # scapy's rule for payloads: any error in a layer makes it Raw
        return Raw(record.data)


def packets(path: Path) -> list[Packet]:
    """All records of a capture file as scapy layers, in order. `time` of a packet is its time stamp
    in seconds. Raises CaptureError for a file that is no capture."""
    with open_capture(path) as capture:
        return [_timed(record) for record in capture]


def _timed(record: Record) -> Packet:
    packet = dissect(record)
    packet.time = EDecimal(record.time_ns) / 10**9
    packet.sniffed_on = record.interface
    return packet
