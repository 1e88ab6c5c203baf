"""`emu fault set|clear|list`: what goes wrong in a lab that is up."""

from __future__ import annotations

import json
from typing import Any

import click
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from emu.cli.options import lab_argument, lab_option
from emu.cli.say import say
from emu.errors import UsageError

_IN_NICS = ("pause-storm", "slow-receiver")


@click.group("fault")
def command() -> None:
    """Make things go wrong on the cables of a lab that is up."""


@command.command("set")
@lab_option
@click.argument("text", metavar="FAULT")
def set_(lab: str | None, text: str) -> None:
    """Begin FAULT, written as in a spec's `faults:`, now.

    emu fault set "loss: {cable: leaf1:h1, every: 256}"

    emu fault set "{name: cut, for: 1ms, link-down: {cable: leaf1:spine1}}"
    """
    from emu.lab.standing.client import StandingLab
    from emu.spec.fault import fault_names
    from emu.spec.load import spec_from_text

    with StandingLab(lab) as standing:
        spec = json.loads(standing.status()["spec"])
        checked = spec_from_text(
            json.dumps(spec | {"faults": [_understood(text)]}).encode(), source="fault"
        )
        (fault,) = checked.faults
        if fault.kind in _IN_NICS:
            raise UsageError(
                f"{fault.kind} is in a NIC, and these come and go with traffic; put it into the "
                "spec's faults:"
            )
        (name,) = fault_names(checked.faults)
        told = fault.model_dump(mode="json", by_alias=True, exclude_unset=True) | {"name": name}
        standing.ask("faults", do="set", name=name, fault=told)
    say(f"{standing.name}: {name} has begun; `emu fault clear {name}` ends it")


@command.command("clear")
@lab_option
@click.argument("name")
def clear(lab: str | None, name: str) -> None:
    """End the fault NAME."""
    from emu.lab.standing.client import StandingLab

    with StandingLab(lab) as standing:
        standing.ask("faults", do="clear", name=name)
    say(f"{standing.name}: {name} is over")


@command.command("list")
@lab_argument
def list_(lab: str | None) -> None:
    """Print the faults of LAB and what they did so far, one JSON object a line."""
    from emu.lab.standing.client import StandingLab

    with StandingLab(lab) as standing:
        for fault in standing.ask("faults", do="list")[0]["faults"]:
            click.echo(json.dumps(fault))


def _understood(text: str) -> Any:
    """The YAML of a fault as data, which the spec's rules then look at."""
    try:
        return YAML(typ="safe").load(text)
    except YAMLError:
        raise UsageError(
            f"{text!r} is no fault; write it like: loss: {{cable: leaf1:h1, every: 256}}"
        ) from None
