"""The queues of a port: WRED curves and schedulers (QUEUE, WRED_PROFILE, SCHEDULER)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry
from emu.sonic.tables import MARKS_GREEN

STRICT = 0
"""The weight that stands for strict priority."""
Schedule = tuple[int | None, ...]
"""The weight of each queue; None: not given."""


@dataclass(frozen=True)
class WredCurve:
    """Where marking begins, where every packet is marked, and the probability just below."""

    kmin_bytes: int
    kmax_bytes: int
    percent: int


def read_curves(
    config: Config, port: str, used: frozenset[int], report: Report
) -> dict[int, WredCurve]:
    """The curves of the queues that mark. `used`: the queues to which a traffic class leads."""
    curves: dict[int, WredCurve] = {}
    for queue in range(8):
        row = config.at("QUEUE", port, str(queue))
        profile = config.referred(row, "wred_profile")
        if row is None or profile is None:
            continue
        if queue not in used:
            report.ignored(row.row("wred_profile"), f"no traffic class leads to queue {queue}")
            continue
        curve = _curve(row, profile, report)
        if curve is not None:
            report.taken(row.row("wred_profile"), "switches.ecn.queues")
            curves[queue] = curve
    return curves


def _curve(row: Entry, profile: Entry, report: Report) -> WredCurve | None:
    """The curve of green packets; None: they are not marked."""
    ecn = profile.get("ecn") or "ecn_none"
    is_on = profile.get("wred_green_enable") == "true"
    marks = ecn in MARKS_GREEN and is_on
    numbers = [profile.get(f"green_{name}") for name in ("min_threshold", "max_threshold")]
    if not marks or None in numbers:
        why = f"{profile.key} does not mark green packets" if not marks else "no green thresholds"
        report.ignored(row.row("wred_profile"), f"{why}; emu's switches mark and never drop early")
        for field in profile.fields:
            report.ignored(profile.row(field), "emu's switches mark and never drop early")
        return None
    percent = profile.get("green_drop_probability")
    for field, key in (
        ("green_min_threshold", "kmin"),
        ("green_max_threshold", "kmax"),
        ("green_drop_probability", "pmax"),
    ):
        if profile.get(field) is not None:
            report.taken(profile.row(field), f"switches.ecn.queues.N.{key}")
    report.taken(profile.row("wred_green_enable"), "switches.ecn")
    _note_ecn(profile, ecn, report)
    kmin, kmax = map(int, numbers)
    if percent is None:
        report.approximated(profile.row(), "no green_drop_probability: pmax is 100 %")
    return WredCurve(kmin, max(kmin, kmax), 100 if percent is None else int(percent))


def _note_ecn(profile: Entry, ecn: str, report: Report) -> None:
    text = "switches.ecn; packets without ECN are queued and not dropped early"
    if ecn == "ecn_all":
        report.taken(profile.row("ecn"), text)
    else:
        report.approximated(profile.row("ecn"), f"{text}; an export writes ecn_all")


def read_schedule(config: Config, ports: Mapping[str, frozenset[int]], report: Report) -> Schedule:
    """The weights of a switch's queues. emu has one set of them: that of most ports.

    `ports`: the queues of each port to which a traffic class leads.
    """
    own = {port: _schedule(config, port, used) for port, used in ports.items()}
    chosen = Counter(own.values()).most_common(1)[0][0]
    for port, schedule in own.items():
        for queue in range(8):
            row = config.at("QUEUE", port, str(queue))
            scheduler = config.referred(row, "scheduler")
            if row is None or scheduler is None:
                continue
            if queue not in ports[port]:
                text = f"no traffic class leads to queue {queue}"
                report.ignored(row.row("scheduler"), text)
            elif schedule[queue] != chosen[queue]:
                text = "emu has one scheduling for all ports of a switch: that of most"
                report.approximated(row.row("scheduler"), text)
            else:
                report.taken(row.row("scheduler"), "switches.scheduling")
                _note_scheduler(scheduler, report)
    for queue in sorted(frozenset.union(*ports.values())):
        if chosen[queue] is None:
            where = Row(config.file, "QUEUE", f"PORT|{queue}", "scheduler")
            report.approximated(where, "not given; DWRR with weight 1")
    return chosen


def _schedule(config: Config, port: str, used: frozenset[int]) -> Schedule:
    weights: list[int | None] = []
    for queue in range(8):
        scheduler = config.referred(config.at("QUEUE", port, str(queue)), "scheduler")
        weights.append(None if scheduler is None or queue not in used else _weight(scheduler))
    return tuple(weights)


def _weight(scheduler: Entry) -> int:
    if scheduler.get("type") == "STRICT":
        return STRICT
    return int(scheduler.get("weight") or 1)


def _note_scheduler(scheduler: Entry, report: Report) -> None:
    kind = scheduler.get("type")
    if kind == "STRICT":
        report.taken(scheduler.row("type"), "switches.scheduling.strict")
        if scheduler.get("weight") is not None:
            report.ignored(scheduler.row("weight"), "strict queues have no weight")
        return
    if kind == "WRR":
        report.approximated(scheduler.row("type"), "emu's rounds count bytes, not packets: DWRR")
    elif kind is not None:
        report.taken(scheduler.row("type"), "switches.scheduling.weights")
    if scheduler.get("weight") is not None:
        report.taken(scheduler.row("weight"), "switches.scheduling.weights")
