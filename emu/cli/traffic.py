"""`emu traffic start|stop [LAB]`: starts or stops the spec's workload in a running lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_argument

if TYPE_CHECKING:
    from emu.daemon.messages import StartTraffic, StopTraffic


@click.group("traffic")
def command() -> None:
    """Start or stop the traffic of a running lab."""


@command.command("start")
@lab_argument
def start(lab: str | None) -> None:
    """Start the spec's traffic from its beginning. It can be started several times."""
    from emu.daemon.messages import StartTraffic

    _change(
        lab, StartTraffic(), "traffic started; `emu watch` shows it, `emu status` shows its results"
    )


@command.command("stop")
@lab_argument
def stop(lab: str | None) -> None:
    """Stop the traffic. Packets in flight are lost."""
    from emu.daemon.messages import StopTraffic

    _change(lab, StopTraffic(), "traffic stopped")


def _change(lab: str | None, query: StartTraffic | StopTraffic, done: str) -> None:
    from emu.daemon.client import LabClient

    with LabClient(lab) as client:
        client.ask(query)
    print_note(f"{client.name}: {done}")
