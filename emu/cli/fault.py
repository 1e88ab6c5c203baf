"""`emu fault set|clear|list`: sets, clears and lists the faults of a running lab."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_argument, lab_option


@click.group("fault")
def command() -> None:
    """Inject faults into a running lab, and clear them."""


@command.command("set")
@lab_option
@click.argument("text", metavar="FAULT")
def set_(lab: str | None, text: str) -> None:
    """Inject FAULT now, in the form of an entry of a spec's `faults:`.

    `emu explain fault` lists the kinds of faults.

    emu fault set "loss: {cable: leaf1:h1, every: 256}"

    emu fault set "{name: storm, for: 1ms, pause-storm: {host: h1, priority: 3}}"

    emu fault set "small-headroom: {switch: leaf1, fraction: 20%}"

    A fault of a host's NIC (a kind with the key `host`) acts while traffic runs. It waits for
    the next workload if there is none, and lasts through later ones. Of verbs programs, the
    workload begins when the first of them opens the device; time passes while they wait, so set a
    short fault while they send.
    """
    from emu.daemon.client import LabClient
    from emu.lab.ipc.queries import SetFault
    from emu.spec.fault import fault_names
    from emu.spec.fault.from_text import fault_from_text
    from emu.spec.scenario import spec_from_json

    with LabClient(lab) as client:
        fault = fault_from_text(text, spec_from_json(client.status().spec))
        (name,) = fault_names((fault,))
        entry = fault.to_mapping() | {"name": name}
        listed, _ = client.ask(SetFault(name, entry))
    waits = any(one.name == name and one.state == "waiting" for one in listed.faults)
    how = "begins with the traffic" if waits else "has begun"
    print_note(f"{client.name}: {name} {how}; `emu fault clear {name}` ends it")


@command.command("clear")
@lab_option
@click.argument("name")
def clear(lab: str | None, name: str) -> None:
    """End the fault NAME."""
    from emu.daemon.client import LabClient
    from emu.lab.ipc.queries import ClearFault

    with LabClient(lab) as client:
        client.ask(ClearFault(name))
    print_note(f"{client.name}: {name} is over")


@command.command("list")
@lab_argument
def list_(lab: str | None) -> None:
    """Print the faults of LAB and their counts so far, one JSON object a line.

    Times are emulated, from the lab's start on, as in `emu capture`. `state` is
    waiting, active or over.
    """
    from emu.daemon.client import LabClient
    from emu.lab.ipc.queries import ListFaults

    with LabClient(lab) as client:
        listed, _ = client.ask(ListFaults())
    for fault in listed.faults:
        click.echo(json.dumps(asdict(fault)))
