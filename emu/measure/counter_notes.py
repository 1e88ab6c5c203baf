"""What each counter of a summary counts: its meaning, unit and source.

Counters of ports and NICs are described in the core's tables, totals here. A name with N stands for
eight priorities or sixteen virtual lanes: rx_prioN_pause is the note of rx_prio3_pause. `emu
explain`, `emu counters --explain` and docs/reference read these notes; a test holds that no summary
has a counter without a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from emu._core import lib
from emu.fabric_kind import Framing
from emu.measure.counter_table import NIC, NUMBERED, PORT, Counter
from emu.spec import references


@dataclass(frozen=True)
class CounterNote:
    name: str
    where: str
    """A key of `PLACES`."""
    meaning: str
    unit: str
    source: str

    def meaning_of(self, name: str) -> str:
        """With the number in a counter's name instead of N."""
        number = pattern_of(self.name).fullmatch(name)
        if number is None or not number.groups():
            return self.meaning
        return NUMBERED.sub(number[1], self.meaning)


PLACES = {
    "ethernet": "ports of a RoCE fabric, and the NICs' ends of their cables",
    "infiniband": "ports of an InfiniBand fabric, the NICs' ends of their cables, and `scale_up`",
    "port": "ports of both fabrics, and the NICs' ends of their cables",
    "nic": "RDMA NICs, in `hosts`",
    "total": "the whole fabric, in `totals`",
}
"""Who has a counter."""

OURS = "this emulator; no other tool has this counter"

_SOURCES = {
    lib.THIS_EMULATOR: OURS,
    lib.LINUX_ETHTOOL: references.ETHTOOL,
    lib.LINUX_HW_COUNTERS: references.HW_COUNTERS,
    lib.IBTA_PMA: references.IBTA_PMA,
    lib.SAI_PORT: references.SAI,
    lib.SONIC_PFCWD: references.SONIC_PFCWD,
}


def _of_ports() -> Iterator[CounterNote]:
    """A name that both framings have from one row has one note."""
    roce, ib = PORT.described[Framing.ETHERNET], PORT.described[Framing.INFINIBAND]
    shared = {name for name in roce if ib.get(name) is roce[name]}
    yield from (_note(name, "port", roce[name]) for name in roce if name in shared)
    yield from (_note(name, "ethernet", row) for name, row in roce.items() if name not in shared)
    yield from (_note(name, "infiniband", row) for name, row in ib.items() if name not in shared)


def _note(name: str, where: str, row: Counter) -> CounterNote:
    return CounterNote(name, where, row.meaning, row.unit, _SOURCES[row.source])


def _totals(*rows: tuple[str, str, str]) -> tuple[CounterNote, ...]:
    return tuple(CounterNote(name, "total", meaning, unit, OURS) for name, unit, meaning in rows)


_TOTALS = _totals(
    ("packets", "packets", "RDMA packets that all NICs sent, ACKs, CNPs and repeats included."),
    ("packet_hops", "packets", "Packets that switch ports sent: each counts once a switch."),
    (
        "drops_lossless",
        "packets",
        "Packets dropped for want of room on priorities that are lossless where it happened; on "
        "InfiniBand, packets that came without credit. A healthy lossless fabric has 0.",
    ),
    ("drops_lossy", "packets", "Packets dropped for want of room on all other priorities."),
    ("drops_watchdog", "packets", "Packets dropped by the PFC watchdog during storms."),
    (
        "drops_other",
        "packets",
        "Packets dropped for other reasons: no route, no lane, TTL, not IP, P_Key, lifetime at "
        "the head of the queue, VL15, malformed, oversize, or damaged.",
    ),
    ("drops_fault", "packets", "Packets that faults of the spec dropped or damaged."),
    ("ce_marked", "packets", "Packets marked CE by all switch ports."),
    ("cnp", "CNPs", "CNPs that all receivers sent."),
    ("pause_frames", "frames", "Pause frames that all ports sent, those of NICs included."),
    ("retransmitted_packets", "packets", "Packets of all flows that were sent again."),
    ("credit_updates", "packets", "InfiniBand's flow-control packets of all ports."),
    ("pfc_storms", "storms", "Storms that PFC watchdogs found."),
    (
        "deadlocks",
        "deadlocks",
        "Deadlocks: credit loops or cyclic buffer dependencies of ports (`deadlocks` lists them).",
    ),
    (
        "credit_wait_ns",
        "ns of emulated time",
        "How long packets waited for credit, all ports and lanes added up.",
    ),
    (
        "paused_ns",
        "ns of emulated time",
        "How long pauses stopped priorities, all ports (those of NICs included) and priorities "
        "added up.",
    ),
)

NOTES = (
    *_of_ports(),
    *(_note(row.name, "nic", row) for row in NIC.rows),
    *_TOTALS,
)


def notes_of(name: str) -> list[CounterNote]:
    """All notes of a counter, of which there is one for each place that has such a counter."""
    return [note for note, pattern in _patterns() if pattern.fullmatch(name)]


def note_of(name: str, places: Iterable[str]) -> CounterNote | None:
    """The note of a counter in the first of these places that has it."""
    by_place = {note.where: note for note in notes_of(name)}
    return next((by_place[place] for place in places if place in by_place), None)


@cache
def _patterns() -> tuple[tuple[CounterNote, re.Pattern[str]], ...]:
    return tuple((note, pattern_of(note.name)) for note in NOTES)


@cache
def pattern_of(name: str) -> re.Pattern[str]:
    """What a note's name stands for: N is a number."""
    return re.compile(NUMBERED.sub("([0-9]|1[0-5]|N)" if "VL" in name else "([0-7]|N)", name))
