"""`emu down [LAB]`: ends a lab that `emu up` has brought up."""

from __future__ import annotations

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_argument


@click.command("down")
@lab_argument
def command(lab: str | None) -> None:
    """End LAB, and wait until nothing of it is left."""
    from emu.daemon.client import LabClient

    with LabClient(lab) as client:
        client.end()
    print_note(f"{client.name} is down")
