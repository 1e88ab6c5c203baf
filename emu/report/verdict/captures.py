"""Checks of captures, with packet parsers that share no code with the sender."""

from __future__ import annotations

from collections.abc import Iterator

from emu.measure.recording import Recording
from emu.report.verdict.outcome import Outcome
from emu.spec.model import Checksums, Marks
from emu.wire.capture import Direction
from emu.wire.inspect import inspect
from emu.wire.inspection import ChecksumCounts, Inspection
from emu.wire.locate import TransportPacket, find_transport, network_packet
from emu.wire.reader import open_capture

_CE = 3


def checksums(check: Checksums, run: Recording) -> Outcome:
    files = [inspect(path) for port, path in run.captures.items() if {port, "all"} & set(check.at)]
    damage = next((file.damage for file in files if file.damage), "")
    if damage:
        return Outcome(False, damage)
    verdicts = [verdict for file in files for verdict in _checksum_counts(file)]
    right = sum(verdict.ok for verdict in verdicts)
    wrong = sum(verdict.bad + verdict.unchecked for verdict in verdicts)
    return Outcome(right >= check.at_least and not wrong, f"{right:,} right, {wrong:,} wrong")


def marks(check: Marks, run: Recording) -> Outcome:
    """Counts CE marks among ECN-capable packets, in the order in which they left."""
    with open_capture(run.captures[check.at]) as capture:
        left = [record for record in capture if record.direction is Direction.OUT]
    found = [find_transport(r.data, network_packet(r.linktype, r.data)) for r in left]
    ecn = [packet.ecn for packet in found if isinstance(packet, TransportPacket) and packet.ecn]
    looked_at = ecn[check.first - 1 : check.last]
    if len(looked_at) < check.packets:
        return Outcome(False, f"{len(ecn):,} ECN-capable packets left in total")
    marked = looked_at.count(_CE)
    expected = check.packets * check.probability
    return Outcome(abs(marked - expected) <= check.tolerance, f"{marked:,}")


def _checksum_counts(file: Inspection) -> Iterator[ChecksumCounts]:
    yield from (file.icrc, file.vcrc, file.lpcrc)
