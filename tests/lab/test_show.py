"""The prompt's tables about a running fabric, here an incast on the virtual clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emu.lab import show
from emu.lab.ipc.queries import PortSnapshot, PortsSnapshot
from tests.support.small_fabrics import ONE_SWITCH, port, spec_of, started

INCAST = (
    ONE_SWITCH
    + """
traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 1MB}]
switches: {pfc: {xoff: 60KB, xon: 40KB}, ecn: {kmin: 20KB, kmax: 100KB}}
hosts: {nic: {cc: dcqcn}}
"""
)


@pytest.fixture(scope="module")
def seen() -> Iterator[PortsSnapshot]:
    with started(spec_of(INCAST)) as run:
        run.run_until(12_000)
        yield show.ports_snapshot(run.fabric)


def rows(lines: list[str]) -> dict[str, list[str]]:
    """Port -> the other columns of its last row."""
    return {line.split()[0]: line.split()[1:] for line in lines[1:]}


def test_queues_shows_current_depths(seen: PortsSnapshot) -> None:
    """All packets wait at the receiver's port, and the senders' ports hold their buffer."""
    told = rows(show.queues(seen))
    queued = int(told["s1:h1"][1])
    held = sum(int(told[f"s1:h{n}"][2]) for n in range(2, 6))
    assert told["s1:h1"][0] == "3"
    assert queued <= held <= queued + 4_200  # plus the packet in transmission


def test_pause_shows_both_directions_and_durations(seen: PortsSnapshot) -> None:
    """Every sender's port has sent pauses and received none."""
    told = rows(show.pause(seen))
    assert set(told) == {"s1:h2", "s1:h3", "s1:h4", "s1:h5"}
    assert all(int(rx) == 0 < int(tx) for _, rx, tx, *_ in told.values())


def test_a_global_pause_is_one_row_for_all_priorities() -> None:
    """An 802.3x pause is sent and counted once for all priorities."""
    with started(spec_of(INCAST, "switches.pfc.frames=pause")) as run:
        run.run_until(12_000)
        own = run.fabric.counters(port(run, "s1:h2"))
        lines = show.pause(show.ports_snapshot(run.fabric))
    frames, us = own["tx_global_pause"][0], max(own["tx_pause_duration"]) // 1_000_000
    assert frames > 0
    assert rows(lines)["s1:h2"] == ["all", "0", str(frames), "0", str(us)]
    assert len(lines) == 1 + 4


def test_cnps_and_marks_are_shown_by_port(seen: PortsSnapshot) -> None:
    """The receiver's port marks packets and receives the CNPs."""
    told = rows(show.cnp(seen, 6))
    marked, rx, tx = map(int, told["s1:h1"])
    assert marked > 0
    assert rx > 0
    assert tx == 0


def test_counters_shows_the_requested_ports(seen: PortsSnapshot) -> None:
    """A prefix of the port's name selects it."""
    assert set(rows(show.counters(seen, "s1:h2"))) == {"s1:h2"}
    assert len(set(rows(show.counters(seen, "")))) == 5


def test_an_unknown_port_is_refused_with_the_nearest(
    seen: PortsSnapshot,
) -> None:
    """A known port without counts has a text of its own."""
    assert show.counters(seen, "s1:h22") == ["there is no port 's1:h22' (did you mean 's1:h2'?)"]
    assert show.counters(seen, "typo") == [
        "there is no port 'typo'; there is s1:h1, s1:h2, s1:h3, s1:h4, s1:h5"
    ]
    idle = PortsSnapshot(0, {"s1:h6": PortSnapshot({"rx_pause_frames": 0}, (), (), ())})
    assert show.counters(idle, "s1:h6") == ["nothing so far"]
