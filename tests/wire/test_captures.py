"""Real captures from the folder in EMU_CAPTURES: bytes of hardware."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from emu.wire.capture import Record
from emu.wire.inspect import inspect
from emu.wire.layers import AETH, BTH, DETH, GRH, LRH
from emu.wire.layers.dissect import dissect
from emu.wire.reader import open_capture
from tests.support.tshark import BTH_FIELDS, TSHARK_FIELDS, tshark


@pytest.fixture(scope="module")
def infiniband_2008() -> Path:
    """43 packets of InfiniBand adapters, 2008; a Wireshark sample (`infiniband.pcap`)."""
    folder = os.environ.get("EMU_CAPTURES")
    if not folder:
        pytest.skip("EMU_CAPTURES is not set: it names a folder of real captures")
    path = Path(folder) / "infiniband-2008.pcap"
    if not path.exists():
        pytest.skip(f"EMU_CAPTURES: {folder} has no {path.name}")
    return path


@pytest.fixture(scope="module")
def records(infiniband_2008: Path) -> list[Record]:
    with open_capture(infiniband_2008) as capture:
        return list(capture)


def test_all_checksums_of_real_packets_are_valid(infiniband_2008: Path) -> None:
    """43 of 43 ICRCs and VCRCs."""
    found = inspect(infiniband_2008)
    assert found.icrc.to_json() == found.vcrc.to_json() == {"ok": 43, "bad": 0, "unchecked": 0}
    assert found.opcodes == {"UD_SEND_ONLY": 24, "RC_SEND_ONLY": 10, "RC_ACKNOWLEDGE": 9}
    assert found.acknowledgements == {"ACK": 9}
    assert (found.psn_totals(), found.other, found.damage) == ((0, 0, 0), {}, None)


def test_real_packets_are_rebuilt_byte_for_byte(records: list[Record]) -> None:
    """Dissected, all computable fields deleted, built again."""
    for record in records:
        packet = dissect(record)
        assert bytes(packet) == record.data
        del packet[LRH].vcrc, packet[LRH].pktlen, packet[LRH].lnh
        del packet[BTH].icrc, packet[BTH].pad, packet[BTH].pad_count
        if GRH in packet:
            del packet[GRH].paylen
        assert bytes(packet) == record.data


LINK_FIELDS = {
    "vl": "infiniband.lrh.vl",
    "sl": "infiniband.lrh.sl",
    "lnh": "infiniband.lrh.lnh",
    "dlid": "infiniband.lrh.dlid",
    "pktlen": "infiniband.lrh.pktlen",
    "slid": "infiniband.lrh.slid",
}
GLOBAL_FIELDS = {"paylen": "infiniband.grh.paylen", "hoplmt": "infiniband.grh.hoplmt"}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark: apt-get install tshark")
def test_tshark_reads_the_same_fields(infiniband_2008: Path, records: list[Record]) -> None:
    """Of all headers except those of payloads, which the layers do not parse."""
    known = {LRH: LINK_FIELDS, GRH: GLOBAL_FIELDS, BTH: BTH_FIELDS} | {
        layer: TSHARK_FIELDS[layer] for layer in (DETH, AETH)
    }
    names = [field for fields in known.values() for field in fields.values()]
    rows = tshark(infiniband_2008, names)
    for record, row in zip(records, rows, strict=True):
        packet = dissect(record)
        ours = {
            field: packet[layer].getfieldval(name) if layer in packet else None
            for layer, fields in known.items()
            for name, field in fields.items()
        }
        assert {field: int(row[field], 0) if row[field] else None for field in ours} == ours
