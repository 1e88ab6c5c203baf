"""`emu events [LAB]`: what happens in a lab that is up, one JSON object a line."""

from __future__ import annotations

import json
import time

import click

from emu.cli.options import lab_argument
from emu.cli.say import say

_SECONDS_BETWEEN_LOOKS = 0.2


@click.command("events")
@lab_argument
def command(lab: str | None) -> None:
    """Print what happens in LAB from now on.

    Changes of state with their causes: links down and up and the fault that did it, routes that
    have converged, faults set and cleared, pause storms, the PFC watchdog, deadlocks, queue pairs
    that failed, traffic. And what is counted: pauses, marks, drops, CNPs, at most five times a
    second for each kind and place.

    One JSON object a line. Goes on until Ctrl-C or the lab's end. A line on stderr says from when
    on events are printed: a script that starts traffic waits for it first.
    """
    from emu.daemon.client import LabClient
    from emu.daemon.client_snapshot import take_snapshot
    from emu.measure.snapshot_diff import Pauses, events_between, in_order
    from emu.spec.scenario import spec_from_json

    with LabClient(lab) as client:
        before = take_snapshot(client)
        topology = spec_from_json(client.status().spec).topology.build()
        peers = {topology.port_name[port]: peer.node for port, peer in topology.peer.items()}
        pauses = Pauses(peers, topology.host)
        say(f"printing the events of {client.name} from now on")
        while True:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            now = take_snapshot(client)
            happened = (*events_between(before, now), *pauses.events(before, now))
            for event in in_order(happened):
                click.echo(json.dumps(event.to_json()))
            before = now
