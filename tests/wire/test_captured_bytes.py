"""Captures of InfiniBand runs, checked by their bytes alone
(`capture_checker.py`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from emu.runtime.virtual import VirtualRunner
from emu.spec.model import spec_from_text
from emu.subnet.sm_sweeps import manage
from tests.support.capture_checker import IN, LINK, OUT, PACKET, check_capture, crc16, frames_of

INCAST = """
fabric: ib
seed: 5
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 3}
switches: {credits: {vls: 4, buffer: 16KiB}}
subnet: {vl_arbitration: {high: {}, low: {0: 64, 1: 64, 2: 64, 3: 64}}}
hosts: {nic: {timeout: 4}}
traffic:
  - {name: in, pattern: incast, from: h2-h4, to: h1, size: 150KB}
  - {name: lane, pattern: pair, from: h5, to: h2, op: send, size: 90KB, priority: 2}
  - {name: odd, pattern: pair, from: h6, to: h3, size: 12345, priority: 3}
capture: [all]
"""
GLOBAL = "hosts.nic.global_route=on"
MARKED = ("switches.fecn={threshold: 14, marking_rate: 1}", "hosts.nic.cc=cct")
LOSS = "faults=[{loss: {cable: leaf1:h1, direction: out, every: 20}}]"
LANES = dict.fromkeys(range(4), 16 * 1024)


def captured(folder: Path, *settings: str) -> dict[str, Path]:
    spec = spec_from_text(INCAST.encode(), source="captured.emu.yml", settings=settings)
    topology = spec.topology.build()
    subnet = manage(spec, topology, folder / "subnet")
    recording = VirtualRunner(subnet).run(spec, out=folder)
    assert all(flow.completed for flow in recording.flows)
    return recording.captures


@pytest.mark.parametrize("settings", [(), (GLOBAL,), MARKED], ids=["local", "global", "marked"])
def test_every_captured_byte_is_valid(settings: tuple[str, ...], tmp_path: Path) -> None:
    """CRCs, lengths, PSNs and credits at every switch port; and tshark finds no error."""
    captures = captured(tmp_path, *settings)
    accounts = {port: check_capture(path, LANES) for port, path in captures.items()}
    assert {port: own.wrong[:3] for port, own in accounts.items() if own.wrong} == {}
    assert sum(own.seen["packets"] for own in accounts.values()) > 500
    for path in (captures["leaf1:h1"], captures["spine1:leaf2"]):
        command = [
            "tshark",
            "-r",
            str(path),
            "-Y",
            "_ws.malformed || _ws.expert.severity >= 0x800000",
        ]
        assert subprocess.run(command, capture_output=True, text=True).stdout == ""


def test_loss_breaks_psns_but_not_the_senders_credits(tmp_path: Path) -> None:
    """A packet lost on a cable was captured where the cable begins."""
    captures = captured(tmp_path, LOSS)
    assert check_capture(captures["leaf1:h1"], LANES, lossless=False).wrong == []
    assert any("PSN" in wrong for wrong in check_capture(captures["leaf1:h1"], LANES).wrong)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return captured(tmp_path_factory.mktemp("good"))["leaf1:h1"].read_bytes()


@pytest.mark.parametrize(
    ("kind", "place", "complaint"),
    [
        (PACKET, 5, "PktLen"),
        (PACKET, 19, "PSN"),
        (PACKET, 60, "ICRC"),
        (PACKET, -1, "VCRC"),
        (LINK, 0, "Op"),
        (LINK, 1, "FCTBS"),
        (LINK, 2, "there is no VL"),
        (LINK, 4, "LPCRC"),
    ],
)
def test_checker_detects_a_flipped_bit(
    good: bytes, kind: int, place: int, complaint: str, tmp_path: Path
) -> None:
    """In this byte of a packet, or of a flow-control packet, that the port has sent."""
    frame = [f.data for f in frames_of(good) if f.kind == kind and f.way == OUT][10]
    begin = good.index(frame)
    spoilt = bytearray(good)
    spoilt[range(begin, begin + len(frame))[place]] ^= 0x80
    file = tmp_path / "spoilt.erf"
    file.write_bytes(spoilt)
    assert any(complaint in wrong for wrong in check_capture(file, LANES).wrong)


def test_checker_detects_a_packet_without_credit(good: bytes, tmp_path: Path) -> None:
    """A grant of half the size, with a valid LPCRC."""
    grants = [f.data for f in frames_of(good) if f.kind == LINK and f.way == IN]
    spoilt = good
    for grant in grants:
        less = grant[:2] + ((int.from_bytes(grant[2:4]) & 0xF000) | 100).to_bytes(2)
        spoilt = spoilt.replace(grant, less + crc16(grant[:2] + less[2:]))
    file = tmp_path / "spoilt.erf"
    file.write_bytes(spoilt)
    assert any("more than its credit" in wrong for wrong in check_capture(file, LANES).wrong)
