"""`emu counters [PLACE...]`: prints the counters of a running lab once."""

from __future__ import annotations

import json
import math
import time

import click

from emu.cli.notes import print_note
from emu.cli.options import json_option, lab_option
from emu.errors import UsageError

SCHEMA = "emu.counters/1"


@click.command("counters")
@click.argument("places", metavar="[PORT | SWITCH | HOST]...", nargs=-1)
@lab_option
@click.option(
    "--delta",
    "seconds",
    type=click.FloatRange(0.01, 3600),
    metavar="SECONDS",
    help="Show the increase in the next SECONDS.",
)
@click.option("--all", "zeros", is_flag=True, help="Also show counters that are 0.")
@click.option("--explain", "explained", is_flag=True, help="Explain each counter.")
@json_option
def command(
    places: tuple[str, ...],
    lab: str | None,
    seconds: float | None,
    zeros: bool,
    explained: bool,
    as_json: bool,
) -> None:
    """Print the counters of a lab's ports and NICs, by the names that operators know.

    Each argument is a port (leaf1:h1), a switch (leaf1: all its ports) or a host (h1: its NIC);
    by default all are printed. Ports count from the lab's start on, NICs from the start of its
    traffic, or from the first verbs program.
    """
    from emu.daemon.client import LabClient
    from emu.daemon.client_snapshot import take_snapshot
    from emu.report.port_counters import Chosen, changes, counters_of, lines_of, shown
    from emu.spec.model import spec_from_json

    if seconds is not None and math.isnan(seconds):
        raise UsageError("--delta is not a number of seconds; write for example 0.5")
    chosen = Chosen(places, zeros or as_json)
    with LabClient(lab) as client:
        spec = spec_from_json(client.status().spec)
        topology = spec.topology.build()
        first = now = take_snapshot(client)
        counted = counters_of(first, topology, spec.fabric_kind.framing, chosen)
        if seconds is not None:
            time.sleep(seconds)
            now = take_snapshot(client)
            later = counters_of(now, topology, spec.fabric_kind.framing, chosen)
            counted = changes(first, counted, now, later)
    over_ns = None if seconds is None else now.time_ns - first.time_ns
    if as_json:
        hosts = {place: own for place, own in counted.items() if place in topology.host}
        ports = {place: own for place, own in counted.items() if place not in hosts}
        head = {"schema": SCHEMA, "lab": client.name, "time_ns": now.time_ns, "over_ns": over_ns}
        click.echo(json.dumps({**head, "ports": ports, "hosts": hosts}, indent=2))
        return
    for line in lines_of(shown(counted, chosen), spec.fabric_kind.framing, explained=explained):
        click.echo(line)
    print_note(_when(client.name, now.time_ns, over_ns))
    if not now.hosts:
        print_note(
            "NICs have no counters yet: they count from `emu traffic start`, or the first verbs "
            "program, on"
        )


def _when(lab: str, time_ns: int, over_ns: int | None) -> str:
    from emu.units import format_time_ns

    if over_ns is None:
        return f"{lab}: counted up to {format_time_ns(time_ns)} of emulated time"
    return f"{lab}: counted in {format_time_ns(over_ns)} of emulated time"
