"""The rows that nothing has used: the report says why of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emu.imports.report import Report
from emu.sonic.config_db import Config, Entry
from emu.sonic.tables import NO_COUNTERPART, TABLES, reason


def note_rest(configs: Sequence[Config], report: Report) -> None:
    """Notes all rows that nothing has used."""
    for config in configs:
        for entry in config.entries:
            if entry.table not in TABLES:
                report.ignored(entry.row(), reason(entry.table, ""))
                continue
            for field in entry.fields:
                if report.outcome(entry.row(field)) is None:
                    report.ignored(entry.row(field), _why_not(entry, field))
            if not entry.fields and report.outcome(entry.row()) is None:
                report.ignored(entry.row(), "the row has no fields")


def _why_not(entry: Entry, field: str) -> str:
    own = reason(entry.table, field)
    is_read = field in TABLES[entry.table].fields or TABLES[entry.table].each is not None
    if own is NO_COUNTERPART and entry.key in TABLES[entry.table].words:
        return "each port with a cable has its own"
    if own is NO_COUNTERPART and is_read:
        return _UNUSED.get((entry.table, field), "no port with a cable uses it")
    return own


_UNUSED: Mapping[tuple[str, str], str] = {
    ("BUFFER_PROFILE", "headroom_type"): "the sizes in the file count",
    ("BUFFER_PROFILE", "packet_discard_action"): "emu's switches drop packets whole",
    ("PORT_QOS_MAP", "pfcwd_sw_enable"): "no port of the switch has a watchdog (PFC_WD)",
    ("PORT", "pfc_asym"): "emu's PFC is the same in both directions",
    ("PORT", "admin_status"): "ports with a cable are up",
}
