"""From a captured record to scapy layers, for people who look at captures in Python.

    with open_capture(Path("leaf1-h1.pcapng")) as capture:
        for record in capture:
            dissect(record).show()
"""

from __future__ import annotations

from scapy.config import conf
from scapy.packet import Packet, Raw

from emu.wire.capture import Kind, Record
from emu.wire.layers.link import LRH, FlowControl

_NATIVE: dict[Kind, type[Packet]] = {Kind.IB: LRH, Kind.IB_LINK: FlowControl}


def dissect(record: Record) -> Packet:
    """The record's layers; Raw where not even the first header is whole."""
    first = _NATIVE.get(record.kind) or conf.l2types.num2layer.get(record.linktype, Raw)
    return _dissect_as(first, record.data)


def _dissect_as(first: type[Packet], data: bytes) -> Packet:
    """scapy's own rule for a payload: whatever goes wrong in a layer makes it Raw."""
    carrier = Packet()
    carrier.guess_payload_class = lambda payload: first
    carrier.do_dissect_payload(data)
    return carrier.payload
