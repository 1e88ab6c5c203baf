"""`emu continue [LAB]`: lets the paused time of a lab go on."""

from __future__ import annotations

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_argument


@click.command("continue")
@lab_argument
def command(lab: str | None) -> None:
    """Let the emulated time of LAB go on after `emu pause` or `emu step`."""
    from emu.daemon.client import LabClient
    from emu.lab.ipc.lab_time import ContinueTime

    with LabClient(lab) as client:
        client.ask(ContinueTime())
    print_note(f"{client.name}: its time runs while there is traffic")
