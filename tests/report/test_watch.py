"""The table of `emu watch`."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from emu.fabric_kind import FABRIC_KINDS, ROCE
from emu.measure.counter_table import PORT
from emu.measure.lab_snapshot import LabSnapshot, TrafficState
from emu.report.watch import Watch, sparkline
from emu.spec.model import spec_from_text
from topologies.graph import Topology

TOPOLOGY: Topology = spec_from_text(
    b"topology: {kind: dumbbell, hosts_per_side: 1}", source="pair.emu.yml"
).topology.build()
PORTS = [TOPOLOGY.port_name[port] for s in TOPOLOGY.switches for port in TOPOLOGY.ports[s.name]]


def _look(time_ns: int, **counters: list[int]) -> LabSnapshot:
    """A snapshot in which all ports have the same counters, 0 unless given."""
    own = {name: [0] * width for name, width in PORT.cells.items()} | counters
    return LabSnapshot(time_ns, dict.fromkeys(PORTS, own), {}, TrafficState(1, "running", None, ()))


def _drawn(watch: Watch, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(watch.table(width, height=24))
    return out.getvalue().splitlines()


@pytest.mark.parametrize(("fabric", "count"), [("roce", "pauses"), ("ib", "updates")])
def test_rates_and_counts_are_those_of_the_fabric(fabric: str, count: str) -> None:
    """12,500 bytes in a microsecond fill a 100 Gb/s cable."""
    watch = Watch("pair", TOPOLOGY, FABRIC_KINDS[fabric])
    watch.add(_look(0))
    held = {"paused": [500_000], "xmit_wait": [500_000] + [0] * 7}
    watch.add(_look(1000, tx_wire_bytes=[12_500], queued_bytes=[96_000], **held))
    title, head, *rows = _drawn(watch, 120)
    assert title.split() == ["pair", "emulated", "1", "us", "traffic", "starts"]
    assert count in head
    assert [row.split()[:8] for row in rows] == [
        [port, "100", "Gb/s", "100%", "96", "KB", "-", "50%"] for port in PORTS
    ]
    assert all(row.rstrip().endswith("█") for row in rows)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("width", [80, 160])
def test_nothing_is_cut_off(width: int, fabric: str) -> None:
    """Neither narrow terminals nor large numbers cut a cell. The rate is drawn over time."""
    watch = Watch("pair", TOPOLOGY, FABRIC_KINDS[fabric])
    many = {name: [98_765_432] * cells for name, cells in PORT.cells.items()}
    watch.add(_look(0))
    watch.add(_look(1_000_000, **many))
    drawn = _drawn(watch, width)
    assert not [line for line in drawn if "…" in line or len(line) > width]
    assert "over time" in drawn[1]
    assert all("▁" in line or "█" in line for line in drawn[2:])


@pytest.mark.parametrize(("fabric", "mark"), [("roce", "CE"), ("ib", "FECN")])
def test_marks_notifications_and_every_drop_are_counted(fabric: str, mark: str) -> None:
    """Drops include packets lost with a link or at the end of their lifetime."""
    watch = Watch("pair", TOPOLOGY, FABRIC_KINDS[fabric])
    marks = {"roce": "ecn_marked", "ib": "fecn_marked"}[fabric]
    watch.add(_look(0))
    counts = {marks: [0, 0, 0, 7, 0, 0, 0, 0], "link_down_discard": [3], "hoq_discard": [2]}
    watch.add(replace(_look(1000, **counts), hosts={"h1": {"np_cnp_sent": 4}}))
    _, head, *rows = _drawn(watch, 80)
    first = dict(zip(head.split(), rows[0].split(), strict=False))
    assert (first["port"], first[mark], first["CNPs"], first["drops"]) == ("left:h1", "7", "4", "5")


def test_a_small_terminal_shows_the_busiest_ports() -> None:
    """The ports are in the fabric's order."""
    watch = Watch("pair", TOPOLOGY, ROCE)
    watch.add(_look(0))
    watch.add(_look(1000))
    assert watch.table(80, height=5).row_count == 2


def test_a_sparkline_shows_the_smallest_rate() -> None:
    """The smallest rate has a bar, and 0 has none."""
    assert sparkline([0, 0.001, 0.5, 1, 2]) == " ▁▄██"
