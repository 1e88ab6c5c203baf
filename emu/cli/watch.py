"""`emu watch [LAB]`: shows a running lab as a table that is always up to date."""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import suppress

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from emu.cli.options import lab_argument
from emu.errors import UsageError

_SECONDS_COVERED = 0.5
"""The time that the sentences cover; at least one interval."""


@click.command("watch")
@lab_argument
@click.option(
    "--interval",
    type=click.FloatRange(0.01, 3600),
    default=0.5,
    show_default=True,
    help="Seconds between two tables.",
)
@click.option(
    "--count", type=click.IntRange(1), help="Number of tables to show.  [default: until Ctrl-C]"
)
def command(lab: str | None, interval: float, count: int | None) -> None:
    """Show LAB's rates, queues, pauses or credit waits, CE marks and CNPs of each port, and
    sentences about present problems.

    If the output is not a terminal, each table is printed below the one before.
    """
    from emu.daemon.client import LabClient
    from emu.daemon.client_snapshot import take_snapshot
    from emu.report.lab_diagnosis import problems_now
    from emu.report.watch import Watch
    from emu.spec.model import spec_from_json

    if math.isnan(interval):
        raise UsageError("--interval is not a number of seconds; write for example 0.5")
    console = Console(markup=False, emoji=False, highlight=False)
    with LabClient(lab) as client, Live(console=console, auto_refresh=False) as live:
        spec = spec_from_json(client.status().spec)
        watch = Watch(client.name, spec.topology.build(), spec.fabric_kind)
        snapshots = deque(
            [take_snapshot(client)], maxlen=1 + math.ceil(_SECONDS_COVERED / interval)
        )
        watch.add(snapshots[-1])
        shown = 0
        with suppress(KeyboardInterrupt):
            while count is None or shown < count:
                time.sleep(interval)
                snapshots.append(take_snapshot(client))
                watch.add(snapshots[-1])
                found = [
                    Text(f"! {one}") for one in problems_now(spec, snapshots[0], snapshots[-1])
                ]
                lines = sum(len(one.wrap(console, console.width)) for one in found)
                shown_now = Group(watch.table(console.width, console.height - lines), *found)
                if console.is_terminal:
                    live.update(shown_now, refresh=True)
                else:
                    console.print(shown_now)
                shown += 1
