"""The limit of lossy egress queues: BUFFER_QUEUE. emu has one for all queues of a switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry
from emu.sonic.qos_maps import PortClasses


@dataclass(frozen=True)
class LossyLimit:
    """The limit of a lossy queue: one of the two."""

    alpha: float | None = None
    queue_limit_bytes: int | None = None


def read_lossy_limit(
    config: Config,
    ports: Mapping[str, PortClasses],
    lossless: Mapping[str, set[int]],
    report: Report,
) -> LossyLimit:
    """The limit of lossy queues. emu has one for a switch: that of most queues.

    `lossless`: the lossless queues of each port.
    """
    rows: list[tuple[Entry, Entry, LossyLimit]] = []
    for port, classes in ports.items():
        for queue in range(8):
            row = config.at("BUFFER_QUEUE", port, str(queue))
            profile = config.referred(row, "profile")
            if row is None or profile is None:
                continue
            if queue in lossless[port]:
                _note_lossless_queue(row, profile, report)
            elif queue in classes.queue:
                rows.append((row, profile, _limit(profile)))
            else:
                report.ignored(row.row("profile"), f"no traffic class leads to queue {queue}")
    if not rows:
        where = Row(config.file, "BUFFER_QUEUE")
        report.approximated(where, "no lossy queue has a profile; switches.alpha is 1")
        return LossyLimit(alpha=1.0)
    chosen = Counter(limit for _, _, limit in rows).most_common(1)[0][0]
    for row, profile, limit in rows:
        _note_lossy(row, profile, limit == chosen, report)
    return chosen


def _limit(profile: Entry) -> LossyLimit:
    static = profile.get("static_th")
    if static:
        return LossyLimit(queue_limit_bytes=int(static))
    return LossyLimit(alpha=2.0 ** int(profile.get("dynamic_th") or 0))


def _note_lossless_queue(row: Entry, profile: Entry, report: Report) -> None:
    text = "PFC limits lossless queues; an egress pool as large as the chip limits nothing"
    report.ignored(row.row("profile"), text)
    for field in profile.fields:
        report.ignored(profile.row(field), text)


def _note_lossy(row: Entry, profile: Entry, is_chosen: bool, report: Report) -> None:
    if not is_chosen:
        text = "emu has one limit for all lossy queues of a switch: that of most"
        report.approximated(row.row("profile"), text)
        return
    report.taken(row.row("profile"), "switches.alpha or queue_limit")
    if profile.get("static_th"):
        report.taken(profile.row("static_th"), "switches.queue_limit")
    elif profile.get("dynamic_th") is not None:
        report.taken(profile.row("dynamic_th"), "switches.alpha = 2^n, of emu's one pool")
    if profile.get("size"):
        report.ignored(profile.row("size"), "emu reserves bytes at ingress alone")
    elif profile.get("size") is not None:
        report.taken(profile.row("size"), "emu reserves nothing at egress")
    if profile.get("pool") is not None:
        report.approximated(profile.row("pool"), "alpha counts the free part of emu's one pool")
