"""`emu pause [LAB]`: stops the emulated time of a lab on the exact clock."""

from __future__ import annotations

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_argument


@click.command("pause")
@lab_argument
def command(lab: str | None) -> None:
    """Stop LAB's emulated time, in all its switches and NICs at one instant.

    The lab must be on the exact clock (`emu up SPEC --clock exact`). While it is paused, `emu
    status`, `counters`, `watch` and `capture` show that instant, faults that are set take effect
    at it, and traffic that is started waits. `emu step` lets some time pass, `emu continue` goes
    on. A paused run gives the same times as one that was never paused.
    """
    from emu.daemon.client import LabClient
    from emu.lab.ipc.lab_time import PauseTime
    from emu.units import write_instant

    with LabClient(lab) as client:
        now, _ = client.ask(PauseTime())
    print_note(f"{client.name}: paused at {write_instant(now.now_ps)}")
