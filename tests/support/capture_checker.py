"""Checks a capture of InfiniBand by its bytes alone. This module imports nothing of the emulator.

    check_capture(Path("leaf1-h1.erf"), lanes={0: 128 * 1024}).wrong     all errors, as text

For every packet it checks both CRCs, the length and, at a lossless port, the PSN; for every
flow-control packet the LPCRC. It also keeps account of credit, which a capture shows from both
sides of a port: the blocks that have passed, the limits granted, and packets beyond a limit.

It reads pcapng, ERF and the headers with `struct`, by their specifications
(draft-ietf-opsawg-pcapng, Wireshark's erf_record.h, IBTA vol 1, 7 and 9).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from struct import unpack_from
from zlib import crc32

IN, OUT = 1, 2
PACKET, LINK = 21, 25
MODULUS, WINDOW, BLOCK = 4096, 2048, 64
ACKNOWLEDGE, CNP = 0x11, 0x81


@dataclass(frozen=True)
class CapturedFrame:
    """A captured frame: its time, direction, kind and bytes."""

    time_ns: int
    way: int
    kind: int
    data: bytes


def frames_of(file: bytes) -> Iterator[CapturedFrame]:
    """The frames of a little-endian pcapng file of ERF records."""
    at = 0
    while at < len(file):
        kind, length = unpack_from("<II", file, at)
        if kind == 6:
            high, low, stored = unpack_from("<III", file, at + 12)
            record = file[at + 28 : at + 28 + stored]
            way = _direction(file[at + 28 + stored + -stored % 4 : at + length - 4])
            yield CapturedFrame(high << 32 | low, way, record[8] & 0x7F, _frame(record))
        at += length


def _direction(options: bytes) -> int:
    at = 0
    while at < len(options):
        code, length = unpack_from("<HH", options, at)
        if code == 2:
            (flags,) = unpack_from("<I", options, at + 4)
            return int(flags & 3)
        at += 4 + length + -length % 4
    raise ValueError("a frame without a direction")


def _frame(record: bytes) -> bytes:
    """The frame in an ERF record, without the zeros after a flow-control packet."""
    (wire_length,) = unpack_from(">H", record, 14)
    return record[16:22] if record[8] & 0x7F == LINK else record[16 : 16 + wire_length]


def crc16(data: bytes) -> bytes:
    """CRC-16 with polynomial 0x100B, reflected; its table comes from a register shifted bit by
    bit."""
    register = 0xFFFF
    for byte in data:
        register = register >> 8 ^ _TABLE[(register ^ byte) & 0xFF]
    return (register ^ 0xFFFF).to_bytes(2, "little")


def _shift_out(register: int) -> int:
    for _ in range(8):
        register = register >> 1 ^ (0xD008 if register & 1 else 0)
    return register


_TABLE = [_shift_out(byte) for byte in range(256)]


def icrc(packet: bytes) -> bytes:
    """The ICRC of a packet that ends with its six bytes of CRCs."""
    masked = bytearray(packet[:-6])
    bth = _bth(packet)
    if bth == 8:
        masked[0] |= 0xF0
    else:
        masked[:8] = bytes(8 * [0xFF])
        masked[8] |= 0x0F
        masked[9:12] = b"\xff\xff\xff"
        masked[15] = 0xFF
    masked[bth + 4] = 0xFF
    return crc32(masked).to_bytes(4, "little")


def _bth(packet: bytes) -> int:
    return {2: 8, 3: 48}[packet[1] & 3]


def blocks(packet: bytes) -> int:
    return -(-len(packet) // BLOCK)


@dataclass
class Lane:
    """One direction of one virtual lane, as both ends count it."""

    passed: int = 0
    """Blocks that have passed the port."""
    limit: int | None = None
    """The last credit limit of the receiver; None before the first."""


@dataclass
class PortAccount:
    """The account of a port's capture and its errors, frame by frame."""

    lanes: Mapping[int, int]
    """Bytes of the receive buffer by VL, the same at both ends."""
    lossless: bool = True
    wrong: list[str] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _lane: dict[tuple[int, int], Lane] = field(default_factory=lambda: defaultdict(Lane))
    _psn: dict[tuple[bytes, bytes, int, bool], int] = field(default_factory=dict)

    def enter(self, number: int, frame: CapturedFrame) -> None:
        self._where = f"frame {number} at {frame.time_ns} ns"
        if frame.kind == PACKET:
            self._packet(frame)
        else:
            self._flow_control(frame)

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(f"{self._where}: {what}")

    def _packet(self, frame: CapturedFrame) -> None:
        packet = frame.data
        self.seen["packets"] += 1
        words = unpack_from(">H", packet, 4)[0] & 0x7FF
        self._expect(4 * words + 2 == len(packet), f"PktLen says {words} words")
        self._expect(packet[-2:] == crc16(packet[:-2]), "VCRC")
        self._expect(packet[-6:-2] == icrc(packet), "ICRC")
        self._pass(frame)
        if self.lossless:
            self._in_order(packet)

    def _pass(self, frame: CapturedFrame) -> None:
        """Counts the packet's blocks; a sent packet must be within its credit."""
        vl, size = frame.data[0] >> 4, blocks(frame.data)
        lane = self._lane[frame.way, vl]
        lane.passed += size
        if frame.way == OUT:
            self._expect(lane.limit is not None, f"VL {vl} was used before any credit came")
            left = ((lane.limit or 0) - lane.passed) % MODULUS
            self._expect(left <= WINDOW, f"VL {vl} has sent more than its credit")

    def _flow_control(self, frame: CapturedFrame) -> None:
        self.seen["updates"] += 1
        first, second = unpack_from(">HH", frame.data)
        op, fctbs, vl, fccl = first >> 12, first & 0xFFF, second >> 12, second & 0xFFF
        self._expect(frame.data[4:6] == crc16(frame.data[:4]), "LPCRC")
        self._expect(op in (0, 1), f"Op {op}")
        self._expect(vl in self.lanes, f"there is no VL {vl}")
        there, back = self._lane[frame.way, vl], self._lane[IN + OUT - frame.way, vl]
        self._expect(
            fctbs == there.passed % MODULUS, f"VL {vl}: FCTBS {fctbs}, {there.passed} seen"
        )
        if frame.way == OUT:  # only this port's own arrivals are known exactly
            room = (fccl - back.passed) % MODULUS
            fits = room * BLOCK <= self.lanes.get(vl, 0)
            self._expect(fits, f"VL {vl}: {room} blocks were granted")
        else:
            back.limit = fccl

    def _in_order(self, packet: bytes) -> None:
        """PSNs of a queue pair's requests are consecutive; acknowledgements can share a PSN and
        skip some."""
        bth = _bth(packet)
        opcode = packet[bth]
        if opcode == CNP:
            return
        qp, psn = (word & 0xFFFFFF for word in unpack_from(">II", packet, bth + 4))
        flow = (packet[2:4], packet[6:8], qp, opcode == ACKNOWLEDGE)
        before = self._psn.get(flow)
        self._psn[flow] = psn
        if before is not None:
            step = (psn - before) % (1 << 24)
            fits = step < 1 << 23 if opcode == ACKNOWLEDGE else step == 1
            self._expect(fits, f"PSN {psn} after {before}")


def check_capture(path: Path, lanes: Mapping[int, int], *, lossless: bool = True) -> PortAccount:
    """All errors in the capture of one port, whose link was up when the capture began."""
    account = PortAccount(lanes, lossless)
    for number, frame in enumerate(frames_of(path.read_bytes()), start=1):
        account.enter(number, frame)
    return account
