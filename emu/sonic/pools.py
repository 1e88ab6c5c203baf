"""The shared pool of a switch: BUFFER_POOL, and what SONiC has beside it.

emu's switches have one pool, into which they put lossless and lossy packets when these arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry
from emu.units import write_size

POOL_OF_UNKNOWN_SIZE = 32_000_000
"""The buffer of emu's preset for SONiC, for files in which the switch computes its pools."""


def read_pool(config: Config, ports: Sequence[str], headroom_bytes: int, report: Report) -> int:
    """The bytes of the shared pool: those of the ingress pool of lossless packets.
    `headroom_bytes`: of all ports together."""
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
            "emu has no shared headroom pool: each port and priority has its own headroom, "
            f"{write_size(headroom_bytes)} in all, and switches.buffer has the room",
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
