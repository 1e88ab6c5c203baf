"""Captures of labs on the four fabrics of the example follow the standards bit for bit.
tshark and emu.wire, which share no code with the C core, read them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from emu.spec.model import load_spec
from emu.wire.capture import Direction, Record
from emu.wire.inspect import inspect
from emu.wire.psn import psn_difference
from emu.wire.reader import open_capture
from tests.support.user import ROOT, make_user

SPEC = ROOT / "topologies/incast.emu.yml"
FABRICS = ("roce-lossy", "roce-pfc", "roce-dcqcn", "ib")
SIZE_BYTES = 150_000
PACKETS = 37
"""Packets of a message of that size: 4096 bytes each, and the last with the rest."""
SETTINGS = (
    f"traffic.0.size={SIZE_BYTES}",
    f"traffic.1.size={SIZE_BYTES}",
    "switches.pfc.xoff=96KB",
    "switches.ecn.kmin=100KB",
    "switches.ecn.kmax=400KB",
    "compare.roce-lossy.switches.buffer=300KB",
    "compare.roce-lossy.hosts.nic.timeout=5",
)
"""Small messages, with thresholds and a buffer that they can reach."""
ACKNOWLEDGE, CNP = 0x11, 0x81


@dataclass(frozen=True)
class Captured:
    """The captures of one fabric."""

    to_h1: Path
    to_spine1: Path
    lost: bool
    """Whether any packet was dropped."""

    @property
    def paths(self) -> tuple[Path, Path]:
        return self.to_h1, self.to_spine1


@pytest.fixture(scope="module")
def captures(lab_machine: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Captured]:
    """Fabric -> its captures."""
    folder = tmp_path_factory.mktemp("captures")
    user = make_user(folder, ordinary=False)
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    ended = user.run_emu("compare", SPEC, "--out", folder, *words)
    assert ended.code == 0, ended.err
    return {fabric: _captured(folder / fabric) for fabric in FABRICS}


def _captured(folder: Path) -> Captured:
    summary = json.loads((folder / "summary.json").read_text())
    to_h1, to_spine1 = (folder / summary["captures"][f"leaf1:{far}"] for far in ("h1", "spine1"))
    totals = summary["totals"]
    return Captured(to_h1, to_spine1, totals["drops_lossy"] + totals["drops_lossless"] > 0)


# --- tshark ---


@dataclass(frozen=True)
class Row:
    """A frame as decoded by tshark. Missing numbers are -1."""

    protocols: str
    malformed: str
    src: str
    dst: str
    opcode: int
    dest_qp: int
    psn: int

    @property
    def is_request(self) -> bool:
        return 0 <= self.opcode < ACKNOWLEDGE


_FIELDS = (
    "frame.protocols",
    "_ws.malformed",
    "ip.src",
    "infiniband.lrh.slid",
    "ip.dst",
    "infiniband.lrh.dlid",
    "infiniband.bth.opcode",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
)


def _tshark(path: Path) -> list[Row]:
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark: apt-get install tshark")
    fields = [word for field in _FIELDS for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *fields]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [_row(*line.split("\t")) for line in done.stdout.splitlines()]


def _row(protocols: str, malformed: str, *values: str) -> Row:
    ip_src, slid, ip_dst, dlid, *numbers = values
    opcode, dest_qp, psn = (int(number or "-1", 0) for number in numbers)
    return Row(protocols, malformed, ip_src or slid, ip_dst or dlid, opcode, dest_qp, psn)


@pytest.mark.parametrize("fabric", FABRICS)
def test_tshark_finds_nothing_malformed(captures: dict[str, Captured], fabric: str) -> None:
    """tshark recognizes the protocol of every frame."""
    known = {"infiniband", "infiniband_link", "macc"}
    for path in captures[fabric].paths:
        rows = _tshark(path)
        assert len(rows) == inspect(path).frames > PACKETS
        assert [row for row in rows if row.malformed] == []
        assert all(known.intersection(row.protocols.split(":")) for row in rows)


@pytest.mark.parametrize("fabric", FABRICS)
def test_every_psn_of_a_message_is_captured(captures: dict[str, Captured], fabric: str) -> None:
    """Each flow's packets to h1 are there once and in order, or at least once with losses."""
    rows = _tshark(captures[fabric].to_h1)
    flows = _flows(rows)
    assert len(flows) == 7
    for psns in flows.values():
        steps = [psn_difference(psn, psns[0]) for psn in psns]
        assert sorted(set(steps)) == list(range(min(steps), min(steps) + PACKETS))
        if not captures[fabric].lost:
            assert steps == list(range(PACKETS))


@pytest.mark.parametrize("fabric", FABRICS)
def test_acks_name_psns_that_were_sent(captures: dict[str, Captured], fabric: str) -> None:
    """Every ACK and NAK names a PSN of the flow that it answers."""
    rows = _tshark(captures[fabric].to_h1)
    flows = _flows(rows)
    answers = [row for row in rows if row.opcode == ACKNOWLEDGE]
    assert {(row.dst, row.src) for row in answers} == set(flows)
    for row in answers:
        assert row.psn in flows[row.dst, row.src]


def _flows(rows: list[Row]) -> dict[tuple[str, str], list[int]]:
    """Source and destination -> the PSNs of requests, in order of capture."""
    flows: dict[tuple[str, str], list[int]] = {}
    for row in filter(lambda row: row.is_request, rows):
        flows.setdefault((row.src, row.dst), []).append(row.psn)
    return flows


# --- emu.wire ---


@pytest.mark.parametrize("fabric", FABRICS)
def test_every_checksum_is_right(captures: dict[str, Captured], fabric: str) -> None:
    """All packets have an ICRC, and those of InfiniBand also VCRC and LPCRC."""
    for path in captures[fabric].paths:
        found = inspect(path)
        packets = found.opcodes.total()
        updates = found.credit_updates.total()
        assert packets > PACKETS
        assert found.icrc.to_json() == {"ok": packets, "bad": 0, "unchecked": 0}
        vcrcs = packets if fabric == "ib" else 0
        assert found.vcrc.to_json() == {"ok": vcrcs, "bad": 0, "unchecked": 0}
        assert found.lpcrc.to_json() == {"ok": updates, "bad": 0, "unchecked": 0}
        assert packets + found.pause_frames + updates == found.frames


@pytest.mark.parametrize(
    ("fabric", "about"),
    [
        ("roce-lossy", {"loss"}),
        ("roce-pfc", {"pauses"}),
        ("roce-dcqcn", {"pauses", "marks", "CNPs"}),
        ("ib", {"credits"}),
    ],
)
def test_a_fabric_shows_its_own_flow_control_only(
    captures: dict[str, Captured], fabric: str, about: set[str]
) -> None:
    """Loss, pauses, marks, CNPs and credits appear on the fabrics that use them."""
    found = [inspect(path) for path in captures[fabric].paths]
    seen = {
        "loss": captures[fabric].lost,
        "pauses": any(one.pause_frames for one in found),
        "marks": any(one.ecn["ce"] for one in found),
        "CNPs": any(one.cnp for one in found),
        "credits": any(one.credit_updates for one in found),
    }
    by_accident = {"loss"} if fabric in ("roce-pfc", "roce-dcqcn") else set()
    assert {name for name, there in seen.items() if there} - by_accident == about


_CNP = re.compile(
    rb"\x45\xc0\x00\x3c\x00\x00\x40\x00[\x3d-\x40]\x11.."  # IPv4: DSCP 48, not ECT; DF; UDP
    rb"\x0a\x00\x00.\x0a\x00\x00."
    rb"[\xc0-\xff].\x12\xb7\x00\x28\x00\x00"  # UDP: to 4791, 40 bytes, no checksum
    rb"\x81\x00\xff\xff\x40(...)\x00\x00\x00\x00"  # BTH: BECN, the sender's QP, PSN 0
    rb"\x00{16}....",
    re.DOTALL,
)


def test_cnps_follow_the_rocev2_annex(captures: dict[str, Captured]) -> None:
    """A CNP has 74 bytes and addresses the same queue pair as the flow's acknowledgements."""
    path = captures["roce-dcqcn"].to_h1
    rows = _tshark(path)
    senders = {(row.dst, row.dest_qp) for row in rows if row.opcode == ACKNOWLEDGE}
    seen = [(row.dst, row.dest_qp) for row in rows if row.opcode == CNP]
    assert seen
    found = [match for record in _records(path) if (match := _CNP.fullmatch(record.data[14:]))]
    assert [int.from_bytes(match[1], "big") for match in found] == [qp for _, qp in seen]
    assert set(seen) <= senders


@pytest.mark.parametrize("fabric", ["roce-pfc", "roce-dcqcn"])
def test_pause_frames_follow_the_standard(captures: dict[str, Captured], fabric: str) -> None:
    """A pause frame has 60 bytes, the port's address and full or zero quanta for priority 3."""
    topology = load_spec(SPEC).topology.build()
    for path, name in zip(captures[fabric].paths, ("leaf1:h1", "leaf1:spine1"), strict=True):
        port = topology.port_named[name]
        senders = {Direction.OUT: port.mac, Direction.IN: topology.peer[port].mac}
        for direction, mac in senders.items():
            frames = [r.data for r in _pauses(path) if r.direction is direction]
            xoff, xon = (_pause_frame(mac, quanta) for quanta in (0xFFFF, 0))
            assert set(frames) <= {xoff, xon}
            assert (xon, xon) not in pairwise(frames)
            assert not frames or (frames[0], frames[-1]) == (xoff, xon)


def test_frames_to_the_host_do_not_overlap(captures: dict[str, Captured]) -> None:
    """A frame begins after the end of the one before: 100 Gb/s, 24 bytes around each frame."""
    for path in (captures[fabric].to_h1 for fabric in FABRICS if fabric != "ib"):
        out = [record for record in _records(path) if record.direction is Direction.OUT]
        for one, next_one in pairwise(sorted(out, key=lambda record: record.time_ns)):
            ends_ns = one.time_ns + (len(one.data) + 24) * 8 / 100
            assert next_one.time_ns >= ends_ns - 1


def _pause_frame(mac: str, quanta: int) -> bytes:
    head = bytes.fromhex(f"0180c2000001{mac.replace(':', '')}880801010008")
    return (head + bytes(6) + quanta.to_bytes(2, "big")).ljust(60, b"\0")


def _pauses(path: Path) -> Iterator[Record]:
    return (record for record in _records(path) if record.data[12:14] == b"\x88\x08")


def _records(path: Path) -> list[Record]:
    with open_capture(path) as capture:
        return list(capture)
