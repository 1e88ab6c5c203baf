"""`emu fault set|clear|list`: what goes wrong in a lab that is up."""

from __future__ import annotations

import json

import click

from emu.cli.options import lab_argument, lab_option
from emu.cli.say import say


@click.group("fault")
def command() -> None:
    """Make things go wrong in a lab that is up."""


@command.command("set")
@lab_option
@click.argument("text", metavar="FAULT")
def set_(lab: str | None, text: str) -> None:
    """Begin FAULT, written as in a spec's `faults:`, now.

    emu fault set "loss: {cable: leaf1:h1, every: 256}"

    emu fault set "{name: mad, for: 1ms, pause-storm: {host: h1, priority: 3}}"

    emu fault set "small-headroom: {switch: leaf1, fraction: 20%}"

    Pause storms, slow receivers and ignored CNPs are in NICs, which are there while traffic
    runs: they last from one workload to the next, and wait for NICs where there are none.
    """
    from emu.daemon.client import StandingLab
    from emu.spec.fault import fault_names
    from emu.spec.fault_text import fault_from_text
    from emu.spec.scenario import spec_from_json

    with StandingLab(lab) as standing:
        fault = fault_from_text(text, spec_from_json(standing.status()["spec"]))
        (name,) = fault_names((fault,))
        told = fault.to_mapping() | {"name": name}
        there = standing.ask("faults", do="set", name=name, fault=told)[0]["faults"]
    waits = any(one["name"] == name and one["state"] == "waiting" for one in there)
    how = "begins with the traffic" if waits else "has begun"
    say(f"{standing.name}: {name} {how}; `emu fault clear {name}` ends it")


@command.command("clear")
@lab_option
@click.argument("name")
def clear(lab: str | None, name: str) -> None:
    """End the fault NAME."""
    from emu.daemon.client import StandingLab

    with StandingLab(lab) as standing:
        standing.ask("faults", do="clear", name=name)
    say(f"{standing.name}: {name} is over")


@command.command("list")
@lab_argument
def list_(lab: str | None) -> None:
    """Print the faults of LAB and what they did so far, one JSON object a line.

    Times are those of `emu capture`: since the lab came up, as it has them. `state` is
    waiting, active or over.
    """
    from emu.daemon.client import StandingLab

    with StandingLab(lab) as standing:
        for fault in standing.ask("faults", do="list")[0]["faults"]:
            click.echo(json.dumps(fault))
