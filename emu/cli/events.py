"""`emu events [LAB]`: prints the events of a running lab, one JSON object a line."""

from __future__ import annotations

import json

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_argument


@click.command("events")
@lab_argument
def command(lab: str | None) -> None:
    """Print the events in LAB from now on.

    Events are changes of state with their causes: links down and up with the fault that caused
    it, converged routes, faults set and cleared, pause storms, the PFC watchdog, deadlocks, failed
    queue pairs, traffic. Other events are counts: pauses, marks, drops, CNPs, at most five times a
    second for each kind and place.

    Prints one JSON object a line until Ctrl-C or the lab's end. A line on stderr shows that events
    are printed from then on: a script must wait for that line before it starts traffic.
    """
    from emu.daemon.client import LabClient
    from emu.daemon.client_snapshot import take_snapshot
    from emu.daemon.event_stream import events_after
    from emu.spec.scenario import spec_from_json

    with LabClient(lab) as client:
        before = take_snapshot(client)
        topology = spec_from_json(client.status().spec).topology.build()
        print_note(f"printing the events of {client.name} from now on")
        for events in events_after(before, client, topology):
            for event in events:
                click.echo(json.dumps(event.to_json()))
