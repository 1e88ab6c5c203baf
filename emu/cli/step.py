"""`emu step TIME [LAB]`: lets a lab's emulated time pass by so much, and pauses it."""

from __future__ import annotations

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_argument
from emu.errors import UsageError


@click.command("step", context_settings={"ignore_unknown_options": True})
@click.argument("time", metavar="TIME")
@lab_argument
def command(time: str, lab: str | None) -> None:
    """Let exactly TIME of LAB's emulated time pass, e.g. `emu step 10us`, and pause it then.

    The lab must be on the exact clock, and its time must stand: `emu pause` stops it.
    """
    from emu.daemon.client import LabClient
    from emu.lab.ipc.lab_time import StepTime
    from emu.units import write_instant

    step_ps = _step_ps(time)
    with LabClient(lab) as client:
        now, _ = client.ask(StepTime(step_ps))
    print_note(f"{client.name}: paused at {write_instant(now.now_ps)}")


def _step_ps(text: str) -> int:
    from emu.units import parse_time

    is_negative = text.strip().startswith("-")
    try:
        step_ps = parse_time(text.strip().removeprefix("-"))
    except ValueError as error:
        raise UsageError(f"TIME: {error}") from None
    if is_negative or step_ps == 0:
        raise UsageError(
            f"TIME: {text!r} is not above 0, and emulated time only goes forward, by 1ps at least; "
            "write it like 10us"
        )
    return step_ps
