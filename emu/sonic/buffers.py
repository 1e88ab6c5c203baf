"""The buffers of a switch: PFC thresholds of ports, reserved bytes, the shared pool, lossy queues.

    BUFFER_PG Ethernet0|3-4 ─▶ BUFFER_PROFILE ─▶ BUFFER_POOL
                               size - xoff   reserved       size   the shared pool
                               xoff          headroom       xoff   the shared headroom pool
                               dynamic_th n  alpha 2^n

With a shared headroom pool `size` is the reserved part alone. emu's switches have one pool, into
which they put lossless and lossy packets when these arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry
from emu.sonic.qos_maps import PortClasses, map_of
from emu.units import write_size

POOL_OF_UNKNOWN_SIZE = 32_000_000
"""The buffer of emu's preset for SONiC, for files in which the switch computes its pools."""
_LARGEST_POOL = 2**32 - 1


@dataclass(frozen=True)
class PortPfc:
    """PFC at a port, as a spec has it."""

    priorities: tuple[int, ...]
    xoff: str
    """`alpha 1/2`, or bytes."""
    xon_bytes: int | None
    """Where xoff is in bytes."""
    xon_offset: int | None
    """Where xoff is an alpha."""
    headroom_bytes: int | None
    """None: the file does not say."""
    reserved_bytes: int


@dataclass(frozen=True)
class LossyLimit:
    """The limit of a lossy queue: one of the two."""

    alpha: float | None = None
    queue_limit_bytes: int | None = None


# --- PFC ---


def read_pfc(config: Config, port: str, report: Report) -> PortPfc | None:
    """The PFC settings of a port; None: it has none."""
    entry = pfc_row(config, port)
    priorities: tuple[int, ...] = entry.get("pfc_enable") if entry is not None else ()
    if entry is None or not priorities:
        return None
    report.taken(entry.row("pfc_enable"), "switches.pfc.priorities")
    groups = {priority: _group(config, port, priority) for priority in priorities}
    rows = {group: config.at("BUFFER_PG", port, str(group)) for group in groups.values()}
    profiles = {group: config.referred(row, "profile") for group, row in rows.items()}
    known = [own for own in profiles.values() if own is not None]
    if not known:
        return _computed(config, port, priorities, rows, report)
    chosen = max(known, key=lambda own: int(own.get("xoff") or 0))
    for group, row in rows.items():
        if row is None or profiles[group] is None:
            where = Row(config.file, "BUFFER_PG", f"{port}|{group}") if row is None else row.row()
            report.approximated(where, f"no profile is given; {chosen.key} counts for it")
        elif profiles[group] is chosen:
            report.taken(row.row("profile"), "switches.pfc")
        else:
            report.approximated(
                row.row("profile"), f"emu has one setting for all priorities; {chosen.key} counts"
            )
    return _of_profile(config, priorities, chosen, report)


def pfc_row(config: Config, port: str) -> Entry | None:
    """The row of PORT_QOS_MAP that says which priorities of a port have PFC."""
    rows = (config.at("PORT_QOS_MAP", key) for key in (port, "global"))
    return next((row for row in rows if row is not None and "pfc_enable" in row.values), None)


def _group(config: Config, port: str, priority: int) -> int:
    """The priority group whose filling pauses a priority."""
    for field in ("pfc_to_pg_map", "tc_to_pg_map"):
        _, groups = map_of(config, port, field)
        if groups is not None and priority in groups.map:
            return groups.map[priority]
    return priority


def _computed(
    config: Config,
    port: str,
    priorities: tuple[int, ...],
    rows: Mapping[int, Entry | None],
    report: Report,
) -> PortPfc:
    """For profiles that the switch makes itself: from its table, or by the dynamic model."""
    default = config.at("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "AZURE")
    threshold = default.get("default_dynamic_th") if default is not None else None
    if default is not None and threshold is not None:
        report.approximated(default.row("default_dynamic_th"), "switches.pfc.xoff")
    for group, row in rows.items():
        where = Row(config.file, "BUFFER_PG", f"{port}|{group}") if row is None else row.row()
        report.approximated(
            where,
            "the switch makes this profile itself; emu computes the headroom from rate, cable and "
            "MTU",
        )
    return PortPfc(
        priorities,
        alpha_text(threshold or 0),
        xon_bytes=None,
        xon_offset=0,
        headroom_bytes=None,
        reserved_bytes=0,
    )


def _of_profile(
    config: Config, priorities: tuple[int, ...], profile: Entry, report: Report
) -> PortPfc:
    pool = config.referred(profile, "pool")
    is_shared = pool is not None and bool(pool.get("xoff"))
    size, headroom = int(profile.get("size") or 0), profile.get("xoff")
    reserved = _reserved(profile, is_shared=is_shared, report=report)
    offset = int(profile.get("xon_offset") or 0)
    for field, key in (("pool", "switches.buffer"), ("xon_offset", "switches.pfc.xon_offset")):
        if profile.get(field) is not None:
            report.taken(profile.row(field), key)
    if headroom is None:
        report.approximated(profile.row(), "no xoff: emu computes the headroom")
    else:
        report.taken(profile.row("xoff"), "switches.pfc.headroom")
    _note_xon(profile, reserved, report)
    static, exponent = profile.get("static_th"), profile.get("dynamic_th")
    if static:
        report.taken(profile.row("static_th"), "switches.pfc.xoff, in bytes")
        limit = min(int(static), _LARGEST_POOL)
        xon = max(0, limit - offset)
        return PortPfc(priorities, write_size(limit), xon, None, headroom, reserved)
    if exponent is None:
        report.approximated(profile.row(), "no dynamic_th: xoff is alpha 1")
    else:
        report.taken(profile.row("dynamic_th"), "switches.pfc.xoff, alpha 2^n")
    assert size >= 0, "sizes are checked"
    return PortPfc(priorities, alpha_text(exponent or 0), None, offset, headroom, reserved)


def _reserved(profile: Entry, *, is_shared: bool, report: Report) -> int:
    """The bytes that are reserved for a port and priority."""
    size, headroom = profile.get("size"), int(profile.get("xoff") or 0)
    if size is None:
        return 0
    if is_shared or size < headroom:
        report.approximated(
            profile.row("size"),
            "switches.reserved: with a shared headroom pool it has no headroom in it; an export "
            "writes size + xoff",
        )
        return int(size)
    report.taken(
        profile.row("size"),
        "switches.reserved = size - xoff; emu reserves as much for lossy priorities, and "
        "switches.buffer has the room",
    )
    return int(size) - headroom


def _note_xon(profile: Entry, reserved: int, report: Report) -> None:
    """A sender resumes at xon bytes at the latest. In emu this is at the reserved bytes."""
    xon = profile.get("xon")
    if xon == reserved:
        report.taken(
            profile.row("xon"), "a sender resumes at the latest when only reserved bytes are used"
        )
    elif xon is not None:
        report.approximated(
            profile.row("xon"),
            f"a sender resumes at xon_offset below xoff, and at the latest at the reserved "
            f"{write_size(reserved)}",
        )


def alpha_text(exponent: int) -> str:
    """`alpha 1/8` for -3."""
    return f"alpha 1/{2**-exponent}" if exponent < 0 else f"alpha {2**exponent}"


# --- pools ---


def read_pool(config: Config, ports: Sequence[str], report: Report) -> int:
    """The bytes of the shared pool: those of the ingress pool of lossless packets."""
    pool = _ingress_pool(config, ports)
    for other in config.table("BUFFER_POOL"):
        if other is not pool:
            _note_other_pool(other, report)
    if pool is None or not pool.get("size"):
        row = Row(config.file, "BUFFER_POOL") if pool is None else pool.row("size")
        report.approximated(
            row, f"no size, which the switch computes; {write_size(POOL_OF_UNKNOWN_SIZE)}"
        )
        return POOL_OF_UNKNOWN_SIZE
    report.taken(pool.row("size"), "switches.buffer = size + all that ports reserve")
    for field in ("type", "mode"):
        if pool.get(field) is not None:
            report.taken(pool.row(field), "emu's one pool, filled at ingress")
    if pool.get("xoff"):
        report.approximated(
            pool.row("xoff"),
            "emu has no shared headroom pool: each port and priority has its own headroom, and "
            "switches.buffer is so much larger",
        )
    return int(pool.get("size"))


def _ingress_pool(config: Config, ports: Sequence[str]) -> Entry | None:
    """The pool of lossless packets; without such, that of any packets that arrive."""
    found: Counter[str] = Counter()
    for port in ports:
        for group in range(8):
            profile = config.referred(config.at("BUFFER_PG", port, str(group)), "profile")
            if profile is not None and profile.get("pool"):
                found[profile.get("pool")] += 1000 if profile.get("xoff") else 1
    named = [name for name, _ in found.most_common()] + ["ingress_lossless_pool"]
    pools = (config.at("BUFFER_POOL", name) for name in named)
    by_type = (own for own in config.table("BUFFER_POOL") if own.get("type") in ("ingress", "both"))
    return next(filter(None, (*pools, *by_type)), None)


def _note_other_pool(pool: Entry, report: Report) -> None:
    if pool.get("type") == "egress":
        text = (
            "emu has one pool, filled at ingress; an egress pool of the chip's size limits nothing"
        )
    else:
        text = "emu has one ingress pool, which lossless and lossy packets share"
    for field in pool.fields:
        report.ignored(pool.row(field), text)


def note_lossy_groups(config: Config, port: str, report: Report) -> None:
    """Notes the profiles of lossy priority groups, which emu does not limit at ingress."""
    text = "emu limits lossy packets at egress alone (switches.alpha), and by the pool"
    for group in range(8):
        row = config.at("BUFFER_PG", port, str(group))
        profile = config.referred(row, "profile")
        if row is None or profile is None or profile.get("xoff"):
            continue
        report.ignored(row.row("profile"), text)
        for field in profile.fields:
            report.ignored(profile.row(field), text)


# --- egress queues ---


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
