"""The PFC watchdog of a switch (PFC_WD). emu has one for all ports of a switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry
from emu.sonic.pfc_profiles import pfc_row

DEFAULT_POLL_MS = 200
_MISSING = {
    "action": "drop",
    "detection_time": f"{DEFAULT_POLL_MS} ms",
    "restoration_time": "twice the detection time",
}
"""The fields of a port, and what counts where one is missing."""


@dataclass(frozen=True)
class WatchdogSettings:
    """Times in milliseconds of the fabric."""

    action: str
    detection_ms: int
    restoration_ms: int
    poll_ms: int


def read_watchdog(config: Config, ports: Sequence[str], report: Report) -> WatchdogSettings | None:
    """The watchdog of a switch; None: no port with PFC has one."""
    rows = {port: config.at("PFC_WD", port) for port in ports}
    known = {port: row for port, row in rows.items() if row is not None and _has_pfc(config, port)}
    poll_ms = _poll(config, bool(known), report)
    if not known:
        return None
    own = {port: _settings(row, poll_ms) for port, row in known.items()}
    chosen = Counter(own.values()).most_common(1)[0][0]
    for port, row in known.items():
        _note(row, own[port] == chosen, report)
        _note_priorities(config, port, report)
    for port in ports:
        if rows[port] is None and _has_pfc(config, port):
            report.approximated(
                Row(config.file, "PFC_WD", port),
                "no watchdog on the switch; emu's watches all ports of a switch with PFC",
            )
            _note_priorities(config, port, report)
    return chosen


def _has_pfc(config: Config, port: str) -> bool:
    entry = pfc_row(config, port)
    return entry is not None and bool(entry.get("pfc_enable"))


def _poll(config: Config, is_used: bool, report: Report) -> int:
    entry = config.at("PFC_WD", "GLOBAL")
    poll_ms = None if entry is None else entry.get("POLL_INTERVAL")
    if entry is None or poll_ms is None:
        return DEFAULT_POLL_MS
    if is_used:
        report.taken(entry.row("POLL_INTERVAL"), "switches.watchdog.poll")
    else:
        report.ignored(entry.row("POLL_INTERVAL"), "no port with PFC has a watchdog")
    return int(poll_ms)


def _settings(row: Entry, poll_ms: int) -> WatchdogSettings:
    """`pfcwd start` waits twice as long for a restoration as for a detection, unless it is told."""
    detection_ms = int(row.get("detection_time") or DEFAULT_POLL_MS)
    return WatchdogSettings(
        row.get("action") or "drop",
        detection_ms,
        int(row.get("restoration_time") or 2 * detection_ms),
        poll_ms,
    )


def _note(row: Entry, is_chosen: bool, report: Report) -> None:
    keys = dict(zip(_MISSING, ("action", "detection", "restoration"), strict=True))
    for field in _MISSING:
        if row.get(field) is None:
            report.approximated(row.row(field), f"not given; {_MISSING[field]}")
            continue
        if is_chosen:
            report.taken(row.row(field), f"switches.watchdog.{keys[field]}, in the fabric's time")
        else:
            text = "emu has one watchdog for all ports of a switch: that of most"
            report.approximated(row.row(field), text)


def _note_priorities(config: Config, port: str, report: Report) -> None:
    entry = config.at("PORT_QOS_MAP", port)
    watched = None if entry is None else entry.get("pfcwd_sw_enable")
    with_pfc = pfc_row(config, port)
    if entry is None or watched is None or with_pfc is None:
        return
    if watched == with_pfc.get("pfc_enable"):
        report.taken(entry.row("pfcwd_sw_enable"), "switches.watchdog, on priorities with PFC")
    else:
        report.approximated(
            entry.row("pfcwd_sw_enable"), "emu's watchdog watches all priorities with PFC"
        )
