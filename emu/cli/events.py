"""`emu events [LAB]`: what happens in a lab that is up, one JSON object a line."""

from __future__ import annotations

import json
import time

import click

from emu.cli.options import lab_argument
from emu.measure.events import events_between

_SECONDS_BETWEEN_LOOKS = 0.2


@click.command("events")
@lab_argument
def command(lab: str | None) -> None:
    """Print what happens in LAB from now on: pauses, marks, drops, links, CNPs, traffic,
    faults.

    One JSON object a line, at most five times a second for each kind and place,
    with a count. Goes on until Ctrl-C or the lab's end.
    """
    from emu.lab.standing.client import StandingLab
    from emu.lab.standing.looking import look_at

    with StandingLab(lab) as standing:
        before = look_at(standing)
        while True:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            now = look_at(standing)
            for event in events_between(before, now):
                click.echo(json.dumps(event.to_json()))
            before = now
