"""The result of `inspect.py`, and its JSON document."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emu.wire.opcodes import Opcode
from emu.wire.psn import PsnSequence

SCHEMA = "emu.inspect/1"
ECN_NAMES = {0b00: "not_ect", 0b01: "ect1", 0b10: "ect0", 0b11: "ce"}


@dataclass
class ChecksumCounts:
    """The results of checks of one kind of checksum."""

    ok: int = 0
    bad: int = 0
    unchecked: int = 0
    """Packets that were not captured completely."""

    def count(self, found: bytes, expected: bytes | None) -> None:
        if expected is None or len(found) < len(expected):
            self.unchecked += 1
        elif found == expected:
            self.ok += 1
        else:
            self.bad += 1

    def to_json(self) -> dict[str, int]:
        return {"ok": self.ok, "bad": self.bad, "unchecked": self.unchecked}


@dataclass(frozen=True, slots=True)
class FlowKey:
    """Identifies the requests of one sender to one queue pair at one interface."""

    interface: str
    src: str
    dst: str
    dest_qp: int


@dataclass
class Inspection:
    """The contents of a capture. Counts are of frames unless their name says otherwise."""

    path: Path
    damage: str | None = None
    """Where and why reading stopped before the file's end."""
    frames: int = 0
    bytes: int = 0
    """Bytes on the wire."""
    truncated: int = 0
    """Frames that were not captured completely."""
    first_ns: int | None = None
    last_ns: int | None = None
    interfaces: Counter[str] = field(default_factory=Counter)
    carriers: Counter[str] = field(default_factory=Counter)
    opcodes: Counter[str] = field(default_factory=Counter)
    icrc: ChecksumCounts = field(default_factory=ChecksumCounts)
    vcrc: ChecksumCounts = field(default_factory=ChecksumCounts)
    lpcrc: ChecksumCounts = field(default_factory=ChecksumCounts)
    ecn: Counter[str] = field(default_factory=Counter)
    """RoCEv2 packets by the ECN bits of IP: `not_ect`, `ect0`, `ect1`, `ce`."""
    acknowledgements: Counter[str] = field(default_factory=Counter)
    """Acknowledgements by the name of their syndrome."""
    pause_frames: int = 0
    xoff: Counter[str] = field(default_factory=Counter)
    """Pauses by class: `prio3`, or `global` for 802.3x pause."""
    xon: Counter[str] = field(default_factory=Counter)
    credit_updates: Counter[str] = field(default_factory=Counter)
    """Flow-control packets by virtual lane: `vl0`."""
    flows: dict[FlowKey, PsnSequence] = field(default_factory=dict)
    vlan_tagged: int = 0
    vlan_stacked: int = 0
    """VLAN-tagged frames with two tags or more."""
    ip_options: int = 0
    """RoCEv2 packets with IPv4 options or IPv6 extension headers."""
    low_source_ports: int = 0
    """RoCEv2 packets with a UDP source port below 49152."""
    fragments: int = 0
    other: Counter[str] = field(default_factory=Counter)
    """Frames without an InfiniBand transport, by protocol."""

    def to_json(self) -> dict[str, Any]:
        """A document for `json.dumps`. Its `schema` changes when its meaning changes."""
        gaps, missing, repeats = self.psn_totals()
        return {
            "schema": SCHEMA,
            "file": str(self.path),
            "damage": self.damage,
            "frames": self.frames,
            "bytes": self.bytes,
            "truncated": self.truncated,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "interfaces": dict(self.interfaces),
            "carriers": dict(self.carriers),
            "opcodes": dict(self.opcodes),
            "icrc": self.icrc.to_json(),
            "vcrc": self.vcrc.to_json(),
            "lpcrc": self.lpcrc.to_json(),
            "ecn": {name: self.ecn[name] for name in ECN_NAMES.values()},
            "ce_marked": self.ecn["ce"],
            "cnp": self.cnp,
            "acknowledgements": dict(self.acknowledgements),
            "pause_frames": self.pause_frames,
            "pause": {
                name: {"xoff": self.xoff[name], "xon": self.xon[name]}
                for name in sorted({*self.xoff, *self.xon})
            },
            "credit_updates": self.credit_updates.total(),
            "credit_updates_by_vl": dict(sorted(self.credit_updates.items())),
            "psn_gaps": gaps,
            "psn_missing": missing,
            "psn_repeats": repeats,
            "flows": [_flow_json(key, sequence) for key, sequence in self.flows.items()],
            "vlan_tagged": self.vlan_tagged,
            "vlan_stacked": self.vlan_stacked,
            "ip_options": self.ip_options,
            "low_source_ports": self.low_source_ports,
            "fragments": self.fragments,
            "other": dict(self.other),
        }

    @property
    def cnp(self) -> int:
        return self.opcodes[Opcode.CNP.name]

    def psn_totals(self) -> tuple[int, int, int]:
        """Gaps, missing PSNs and repeats over all flows."""
        sequences = self.flows.values()
        return (
            sum(sequence.gaps for sequence in sequences),
            sum(sequence.missing for sequence in sequences),
            sum(sequence.repeats for sequence in sequences),
        )

    def see_time(self, time_ns: int) -> None:
        self.first_ns = time_ns if self.first_ns is None else min(time_ns, self.first_ns)
        self.last_ns = time_ns if self.last_ns is None else max(time_ns, self.last_ns)


def _flow_json(key: FlowKey, sequence: PsnSequence) -> dict[str, Any]:
    return {
        "interface": key.interface,
        "src": key.src,
        "dst": key.dst,
        "dest_qp": key.dest_qp,
        "packets": sequence.packets,
        "gaps": sequence.gaps,
        "missing": sequence.missing,
        "repeats": sequence.repeats,
    }
