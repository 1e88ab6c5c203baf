"""Conversion of the core's raw capture to files."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import FabricError
from emu.fabric_kind import Framing
from emu.wire.capture import Direction, Kind, Record
from emu.wire.convert import convert
from emu.wire.raw import RawKind
from emu.wire.reader import open_capture
from tests.support import capture_files as files
from tests.support import known_packets as vectors

FRAME = vectors.REAL_ROCE_ACK.frame
PACKET = vectors.REAL_IB_ACK.frame
CREDITS = bytes.fromhex("012324566a84")
PORTS = {0: "leaf1:h1", 5: "leaf1:spine1#2"}
RATES = dict.fromkeys(PORTS.values(), 100_000_000_000)

ETHERNET_RUN: list[files.Raw] = [
    (0, 1_500, RawKind.ETHERNET, Direction.IN, FRAME),
    (5, 2_000, RawKind.ETHERNET, Direction.OUT, FRAME),
    (0, 3_999, RawKind.ETHERNET, Direction.OUT, FRAME[:60]),
]
IB_RUN: list[files.Raw] = [
    (0, 1_000, RawKind.IB, Direction.IN, PACKET),
    (0, 2_000, RawKind.IB_LINK, Direction.OUT, CREDITS),
]


def raw_file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "raw"
    path.write_bytes(content)
    return path


def records(path: Path) -> list[Record]:
    with open_capture(path) as capture:
        found = list(capture)
    assert capture.damage is None
    return found


def test_ethernet_makes_a_pcapng_file_per_port(tmp_path: Path) -> None:
    """Named after the ports, with nanoseconds, directions and the port as interface."""
    raw = raw_file(tmp_path, files.raw_capture(ETHERNET_RUN))
    captures = convert(raw, tmp_path, PORTS, RATES, Framing.ETHERNET)
    assert {name: path.name for name, path in captures.items()} == {
        "leaf1:h1": "leaf1-h1.pcapng",
        "leaf1:spine1#2": "leaf1-spine1-2.pcapng",
    }
    first, second = records(captures["leaf1:h1"])
    assert (first.time_ns, first.direction, first.data) == (1, Direction.IN, FRAME)
    assert (second.time_ns, second.direction, second.data) == (3, Direction.OUT, FRAME[:60])
    assert first.interface == "leaf1:h1"


def test_infiniband_makes_erf_records(tmp_path: Path) -> None:
    """Packets and credits in one file, in order."""
    raw = raw_file(tmp_path, files.raw_capture(IB_RUN))
    path = convert(raw, tmp_path, {0: "leaf1:h1"}, RATES, Framing.INFINIBAND)["leaf1:h1"]
    assert path.name == "leaf1-h1.erf"
    assert [(record.kind, record.data) for record in records(path)] == [
        (Kind.IB, PACKET),
        (Kind.IB_LINK, CREDITS),
    ]


@pytest.mark.parametrize(
    ("run", "framing", "name"),
    [
        (IB_RUN, Framing.INFINIBAND, "b-c.erf"),
        (ETHERNET_RUN[:1], Framing.ETHERNET, "b-c.pcapng"),
        ([], Framing.INFINIBAND, "b-c.erf"),
        ([], Framing.ETHERNET, "b-c.pcapng"),
    ],
)
def test_idle_port_gets_an_empty_file(
    tmp_path: Path, run: list[files.Raw], framing: Framing, name: str
) -> None:
    """In the format of the fabric, also where no port has a frame."""
    raw = raw_file(tmp_path, files.raw_capture(run))
    captures = convert(raw, tmp_path, {0: "a:b", 9: "b:c"}, {}, framing)
    assert captures["b:c"].name == name
    assert records(captures["b:c"]) == []


def test_truncated_last_record_is_left_out(tmp_path: Path) -> None:
    """The capture of a core that died remains readable, except for its last record."""
    content = files.raw_capture(ETHERNET_RUN)
    for cut in range(1, 90):
        raw = raw_file(tmp_path, content[:-cut])
        captures = convert(raw, tmp_path, PORTS, RATES, Framing.ETHERNET)
        assert len(records(captures["leaf1:h1"])) == 1


def test_mixture_of_fabrics_is_refused(tmp_path: Path) -> None:
    """A fabric is Ethernet or InfiniBand, and so is a file."""
    raw = raw_file(tmp_path, files.raw_capture(IB_RUN + ETHERNET_RUN))
    with pytest.raises(FabricError, match=r"link type ETHERNET at leaf1:h1, .* link type ERF"):
        convert(raw, tmp_path, PORTS, RATES, Framing.INFINIBAND)


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ((7, 0, RawKind.ETHERNET, Direction.IN, FRAME), "port 7, which is not captured"),
        ((0, -1, RawKind.ETHERNET, Direction.IN, FRAME), "offset 0: .*before the start"),
    ],
)
def test_bad_records_are_refused(tmp_path: Path, record: files.Raw, complaint: str) -> None:
    """With the file's name and the offset."""
    raw = raw_file(tmp_path, files.raw_capture([record]))
    with pytest.raises(FabricError, match=f"raw: .*{complaint}"):
        convert(raw, tmp_path, PORTS, RATES, Framing.ETHERNET)
