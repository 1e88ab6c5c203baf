"""tshark as an independent reader: the fields that it finds in a capture."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from scapy.packet import Packet

from emu.wire import erf
from emu.wire.capture import Interface, LinkType
from emu.wire.layers import (
    AETH,
    DETH,
    LRH,
    RETH,
    AtomicAckETH,
    AtomicETH,
)
from emu.wire.pcapng import PcapngWriter

TSHARK_FIELDS: dict[type[Packet], dict[str, str]] = {
    RETH: {
        "va": "infiniband.reth.va",
        "r_key": "infiniband.reth.r_key",
        "dma_len": "infiniband.reth.dmalen",
    },
    AETH: {"syndrome": "infiniband.aeth.syndrome", "msn": "infiniband.aeth.msn"},
    AtomicETH: {
        "va": "infiniband.reth.va",
        "r_key": "infiniband.reth.r_key",
        "swap_add": "infiniband.atomiceth.swapdt",
        "compare": "infiniband.atomiceth.cmpdt",
    },
    AtomicAckETH: {"original": "infiniband.atomicacketh.origremdt"},
    DETH: {"q_key": "infiniband.deth.q_key", "src_qp": "infiniband.deth.srcqp"},
}
BTH_FIELDS = {
    "opcode": "infiniband.bth.opcode",
    "pad_count": "infiniband.bth.padcnt",
    "p_key": "infiniband.bth.p_key",
    "dest_qp": "infiniband.bth.destqp",
    "ack_req": "infiniband.bth.a",
    "psn": "infiniband.bth.psn",
}
MALFORMED = "_ws.malformed"


def tshark(path: Path, fields: Sequence[str]) -> list[dict[str, str]]:
    """One row of field values for each frame; with `_ws.malformed`, which must be empty."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|"]
    for name in (*fields, MALFORMED):
        command += ["-e", name]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = (line.split("|") for line in output.splitlines())
    return [dict(zip((*fields, MALFORMED), row, strict=True)) for row in rows]


def number(text: str) -> int:
    return int(text, 0)


def write(path: Path, packets: Sequence[Packet]) -> None:
    """Writes a pcapng file, with ERF records for native packets."""
    native = LRH in packets[0]
    linktype = LinkType.ERF if native else LinkType.ETHERNET
    with path.open("wb") as stream:
        writer = PcapngWriter(stream, [Interface("leaf1:h1", linktype)])
        for n, packet in enumerate(packets):
            data = bytes(packet)
            writer.write(erf.packet_record(data, time_ns=n) if native else data, time_ns=n)
