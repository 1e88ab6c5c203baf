"""The classes of a port: DSCP or PCP -> traffic class -> priority group and queue.

emu's priority is SONiC's traffic class. emu counts the packets of each priority by themselves,
pauses them by the same number, and a pause stops the queue of that priority. SONiC has a map for
each of these steps, and usually all of them say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry
from emu.spec.classes import DSCPS, PRIORITIES

_UNMAPPED_TC = 0
"""The traffic class of packets without an entry in the map (SAI, SAI_PORT_ATTR_QOS_DEFAULT_TC)."""
_SAME = {number: number for number in range(PRIORITIES)}


@dataclass(frozen=True)
class PortClasses:
    """All maps of a port, complete."""

    trust: Literal["dscp", "pcp"]
    dscp: tuple[int, ...]
    """The priority of each DSCP."""
    pcp: tuple[int, ...]
    queue: tuple[int, ...]
    """The egress queue of each priority."""


def map_of(config: Config, port: str, field: str) -> tuple[Entry | None, Entry | None]:
    """The row of PORT_QOS_MAP that has a field for a port, and the map that it names.

    A port's own field goes before that of `global`.
    """
    for key in (port, "global"):
        entry = config.at("PORT_QOS_MAP", key)
        if entry is not None and entry.get(field) is not None:
            return entry, config.referred(entry, field)
    return None, None


def read_classes(config: Config, port: str, report: Report) -> PortClasses:
    dscp = _map(config, port, "dscp_to_tc_map", "switches.classes.dscp", report)
    pcp = _map(config, port, "dot1p_to_tc_map", "switches.classes.pcp", report)
    queue = _map(config, port, "tc_to_queue_map", "switches.classes.queue", report)
    if dscp is None:
        row = Row(config.file, "PORT_QOS_MAP", port, "dscp_to_tc_map")
        report.approximated(row, f"not given; every DSCP has traffic class {_UNMAPPED_TC}")
    else:
        _note_unlisted(dscp, report)
    return PortClasses(
        trust="pcp" if dscp is None and pcp is not None else "dscp",
        dscp=_complete(dscp, {}, DSCPS),
        pcp=_complete(pcp, {} if pcp else _SAME, PRIORITIES),
        queue=_complete(queue, {} if queue else _SAME, PRIORITIES),
    )


def _map(config: Config, port: str, field: str, key: str, report: Report) -> Entry | None:
    entry, own = map_of(config, port, field)
    if entry is None or own is None:
        return None
    report.taken(entry.row(field), key)
    for name in own.fields:
        report.taken(own.row(name), key)
    return own


def _complete(own: Entry | None, otherwise: Mapping[int, int], count: int) -> tuple[int, ...]:
    known = own.map if own is not None else {}
    return tuple(known.get(n, otherwise.get(n, _UNMAPPED_TC)) for n in range(count))


def _note_unlisted(dscp: Entry, report: Report) -> None:
    missing = DSCPS - len(dscp.values)
    if missing:
        report.approximated(
            dscp.row(),
            f"{missing} DSCPs are not listed; they have traffic class {_UNMAPPED_TC}, SAI's "
            "default: switches.classes.other_dscp",
        )


def note_priority_groups(
    config: Config, port: str, lossless: tuple[int, ...], report: Report
) -> None:
    """Notes where priority groups differ from emu's, which are the priorities."""
    entry, groups = map_of(config, port, "tc_to_pg_map")
    if entry is None or groups is None:
        return
    report.taken(entry.row("tc_to_pg_map"), "emu counts each priority by itself")
    count = Counter(groups.map.values())
    for tc, group in groups.map.items():
        row = groups.row(str(tc))
        if tc == group and count[group] == 1:
            report.taken(row, "emu counts each priority by itself")
        elif tc in lossless:
            report.approximated(row, f"emu counts priority {tc} by itself, and pauses it by itself")
        else:
            report.approximated(
                row, f"lossy classes share group {group}; emu counts each priority by itself"
            )


def note_pfc_maps(
    config: Config, port: str, lossless: tuple[int, ...], classes: PortClasses, report: Report
) -> None:
    """Notes where a pause acts on another queue or group than in emu."""
    entry, groups = map_of(config, port, "pfc_to_pg_map")
    if entry is not None and groups is not None:
        report.taken(entry.row("pfc_to_pg_map"), "emu pauses the priority of a group")
        for priority, group in groups.map.items():
            row = groups.row(str(priority))
            if priority not in lossless:
                report.ignored(row, f"PFC is off for priority {priority}")
            elif priority == group:
                report.taken(row, "emu pauses the priority of a group")
            else:
                report.approximated(row, f"emu pauses priority {priority} for its own packets")
    entry, queues = map_of(config, port, "pfc_to_queue_map")
    if entry is not None and queues is not None:
        report.taken(entry.row("pfc_to_queue_map"), "a pause stops the queue of its priority")
        for priority, queue in queues.map.items():
            row = queues.row(str(priority))
            if queue == classes.queue[priority]:
                report.taken(row, "a pause stops the queue of its priority")
            else:
                report.approximated(row, f"in emu the pause stops queue {classes.queue[priority]}")
