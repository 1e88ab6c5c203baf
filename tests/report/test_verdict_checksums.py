"""The check of checksums in captures: all ports or some, and wrong checksums."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from emu.report.verdict import CheckResult, check_results
from emu.spec.model import Check
from emu.wire.layers import BTH, Opcode
from tests.support import capture_files as files
from tests.support.synthetic import record, spec

RUN = spec(traffic=[{"name": "flow", "pattern": "pair", "from": "h1", "to": "h2", "size": "1KB"}])
GOOD = bytes(
    Ether() / IP(dst="10.0.0.2") / UDP(sport=0xC000) / BTH(opcode=Opcode.RC_SEND_ONLY) / b"data"
)
SPOILT = GOOD[:-5] + b"?" + GOOD[-4:]


def checked(folder: Path, captures: dict[str, bytes], **check: object) -> CheckResult:
    paths = {port: folder / port.replace(":", "-") for port in captures}
    for port, path in paths.items():
        path.write_bytes(captures[port])
    (result,) = check_results(
        [Check.model_validate({"checksums": check})],
        record(RUN, ends_ns={"flow": 1}, captures=paths),
    )
    return result


@pytest.mark.parametrize(
    ("check", "passed", "detail"),
    [
        ({"at": "leaf1:h1", "at_least": 3}, True, "3 right, 0 wrong"),
        ({"at": "leaf1:h1", "at_least": 4}, False, "3 right, 0 wrong"),
        ({"at": "leaf1:h2"}, False, "1 right, 1 wrong"),
        ({"at_least": 4}, False, "4 right, 1 wrong"),
    ],
)
def test_one_wrong_checksum_fails(
    tmp_path: Path, check: dict[str, object], passed: bool, detail: str
) -> None:
    """One payload byte differs in a packet at leaf1:h2."""
    captures = {"leaf1:h1": files.pcapng([GOOD] * 3), "leaf1:h2": files.pcapng([GOOD, SPOILT])}
    result = checked(tmp_path, captures, **check)
    assert (result.passed, result.detail) == (passed, detail)


def test_a_truncated_capture_fails(tmp_path: Path) -> None:
    """The missing packets could be wrong."""
    result = checked(tmp_path, {"leaf1:h1": files.pcapng([GOOD] * 3)[:-7]})
    assert not result.passed
    assert "cut" in result.detail or "end" in result.detail
