"""The check of marks in a capture: the packets that it counts, and the bounds on marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from emu.report.verdict import check_results
from emu.spec.model import Check
from emu.wire.capture import Direction, Interface, LinkType
from emu.wire.layers import BTH, Opcode
from emu.wire.pcapng import PcapngWriter
from tests.support.synthetic import record, spec

RUN = spec(traffic=[{"name": "flow", "pattern": "pair", "from": "h1", "to": "h2", "size": "1KB"}])
NOT_ECT, ECT0, CE = 0, 2, 3
PLACES = 400
MARKED = {place for place in range(101, 301) if place % 4 == 0}
"""The marked packets: 50 of the 200 in the middle."""


def _packet(ecn: int) -> bytes:
    ip = IP(dst="10.0.0.2", tos=26 << 2 | ecn)
    return bytes(Ether() / ip / UDP(sport=0xC000) / BTH(opcode=Opcode.RC_SEND_ONLY))


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of the packets, packets of the other direction, and packets without ECT."""
    path = tmp_path_factory.mktemp("marks") / "leaf1-h1.pcapng"
    with path.open("wb") as stream:
        writer = PcapngWriter(stream, [Interface("leaf1:h1", LinkType.ETHERNET)])
        for place in range(1, PLACES + 1):
            frames = [
                (Direction.IN, _packet(CE)),
                (Direction.OUT, _packet(NOT_ECT)),
                (Direction.OUT, _packet(CE if place in MARKED else ECT0)),
            ]
            for direction, data in frames:
                writer.write(data, time_ns=place, direction=direction)
    return path


@pytest.mark.parametrize(
    ("first", "last", "probability", "passed", "detail"),
    [
        (1, 100, "0%", True, "0"),
        (101, 300, "25%", True, "50"),
        (101, 300, "35%", True, "50"),  # 70, and 4 deviations are 27
        (101, 300, "40%", False, "50"),  # 80, and 4 deviations are 28
        (101, 300, "10%", False, "50"),  # 20, and 4 deviations are 17
        (101, 300, "100%", False, "50"),
        (101, 300, "0%", False, "50"),
        (104, 104, "100%", True, "1"),
        (301, 401, "0%", False, "400 ECN-capable packets left in total"),
    ],
)
def test_the_share_of_marks_is_within_chance(
    capture: Path, first: int, last: int, probability: str, *, passed: bool, detail: str
) -> None:
    wanted = {"at": "leaf1:h1", "first": first, "last": last, "probability": probability}
    run = record(RUN, ends_ns={"flow": 1}, captures={"leaf1:h1": capture})
    (result,) = check_results([Check.model_validate({"marks": wanted})], run)
    assert (result.passed, result.detail) == (passed, detail)
