"""`emu traffic start|stop [LAB]`: the spec's workload in a lab that is up."""

from __future__ import annotations

import click

from emu.cli.options import lab_argument
from emu.cli.say import say


@click.group("traffic")
def command() -> None:
    """Start or stop the traffic of a lab that is up."""


@command.command("start")
@lab_argument
def start(lab: str | None) -> None:
    """Start the spec's traffic from its beginning, as often as you like."""
    _change(lab, "start", "traffic started; `emu watch` shows it, `emu status` what came of it")


@command.command("stop")
@lab_argument
def stop(lab: str | None) -> None:
    """Stop the traffic; what is on its way is lost."""
    _change(lab, "stop", "traffic stopped")


def _change(lab: str | None, do: str, done: str) -> None:
    from emu.daemon.client import StandingLab

    with StandingLab(lab) as standing:
        standing.ask("traffic", do=do)
    say(f"{standing.name}: {done}")
