"""PFC of a port: its lossless priority groups and their buffer profile.

    BUFFER_PG Ethernet0|3-4 ─▶ BUFFER_PROFILE     size - xoff   reserved
                                                  xoff          headroom
                                                  dynamic_th n  pauses at alpha 2^n
                                                  static_th     pauses at so many bytes

With a shared headroom pool (xoff of BUFFER_POOL) `size` is the reserved part alone. emu has one
setting for all priorities of a port: that of the group with the most headroom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry
from emu.sonic.qos_maps import map_of
from emu.units import write_size

_LARGEST_THRESHOLD = 2**32 - 1


@dataclass(frozen=True)
class PortPfc:
    """PFC at a port, as a spec has it."""

    priorities: tuple[int, ...]
    xoff_bytes: int | None
    """A static threshold; None: it is dynamic."""
    exponent: int
    """n of a dynamic threshold alpha 2^n."""
    xon_offset: int
    headroom_bytes: int | None
    """None: the file does not say."""
    reserved_bytes: int

    @property
    def xoff(self) -> str:
        """The threshold as a spec has it: bytes, or `alpha 1/2`."""
        if self.xoff_bytes is not None:
            return write_size(self.xoff_bytes)
        if self.exponent < 0:
            return f"alpha 1/{2**-self.exponent}"
        return f"alpha {2**self.exponent}"

    @property
    def xon(self) -> dict[str, str]:
        """The key of a spec that says when a sender resumes."""
        if self.xoff_bytes is not None:
            return {"xon": write_size(max(0, self.xoff_bytes - self.xon_offset))}
        return {"xon_offset": write_size(self.xon_offset)}


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
        xoff_bytes=None,
        exponent=int(threshold or 0),
        xon_offset=0,
        headroom_bytes=None,
        reserved_bytes=0,
    )


def _of_profile(
    config: Config, priorities: tuple[int, ...], profile: Entry, report: Report
) -> PortPfc:
    pool = config.referred(profile, "pool")
    is_shared = pool is not None and bool(pool.get("xoff"))
    headroom = profile.get("xoff")
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
    elif exponent is None:
        report.approximated(profile.row(), "no dynamic_th: xoff is alpha 1")
    else:
        report.taken(profile.row("dynamic_th"), "switches.pfc.xoff, alpha 2^n")
    return PortPfc(
        priorities,
        xoff_bytes=min(int(static), _LARGEST_THRESHOLD) if static else None,
        exponent=int(exponent or 0),
        xon_offset=offset,
        headroom_bytes=headroom,
        reserved_bytes=reserved,
    )


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
