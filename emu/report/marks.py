"""CE marks on the priorities that pause.

Packets of a lossy priority may be marked, and its senders slowed down, while another priority
pauses without a single mark. Totals do not show this; the counters of ports do.
"""

from __future__ import annotations

from emu.measure.counters import PRIORITIES
from emu.measure.records import Counters
from emu.report.run_view import RunFacts


def has_cnps_for_paused_priorities(run: RunFacts) -> bool:
    """Whether there were CNPs, and marks on priorities that pause."""
    return bool(run.total("cnp") and marked_where_paused(run))


def marked_only_elsewhere(run: RunFacts) -> bool:
    """Whether there were pauses, and marks only on other priorities."""
    ports = _of_switches(run)
    names = [f"tx_prio{priority}_ecn_marked" for priority in PRIORITIES]
    marked = any(own.get(name) for own in ports for name in names)
    return bool(marked and run.total("pause_frames") and not marked_where_paused(run))


def marked_where_paused(run: RunFacts) -> int:
    """Packets marked on priorities that were paused at switches. Where global pauses (802.3x) stop
    every priority, all marked packets count."""
    ports = _of_switches(run)
    if any(own.get(f"{way}_global_pause") for own in ports for way in ("rx", "tx")):
        return run.total("ce_marked")
    paused = {
        priority
        for priority in PRIORITIES
        for own in ports
        if own.get(f"tx_prio{priority}_pause") or own.get(f"rx_prio{priority}_pause")
    }
    return sum(own.get(f"tx_prio{priority}_ecn_marked", 0) for own in ports for priority in paused)


def _of_switches(run: RunFacts) -> list[Counters]:
    return list(run.recording.ports.values())
