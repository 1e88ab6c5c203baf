"""`emu exec NODE COMMAND ...`: a program in a node of a lab that is up."""

from __future__ import annotations

import sys

import click

from emu.cli.options import lab_option
from emu.cli.say import say, time_of_programs
from emu.errors import UsageError


@click.command("exec", context_settings={"allow_interspersed_args": False})
@lab_option
@click.argument("node")
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(lab: str | None, node: str, words: tuple[str, ...]) -> None:
    """Run COMMAND on the host or switch NODE, e.g. `emu exec h1 -- ping -c 3 h5`.

    Hosts know each other by name; on a switch there are Open vSwitch's programs.
    InfiniBand's tools (ibnetdiscover, perfquery, ...) see the fabric from either.
    Exits as COMMAND does. COMMAND measures real time; on a terminal, a line says how to
    convert it to the fabric's time.
    """
    from emu.lab.standing.client import StandingLab
    from emu.lab.standing.enter import run_there
    from emu.subnet.diagnostics import DIAGNOSTICS

    program = words[1:] if words[0] == "--" else words
    if not program:
        raise UsageError("no command; write it like: emu exec h1 -- ping -c 3 h5")
    with StandingLab(lab) as standing:
        if sys.stderr.isatty():
            say(time_of_programs(standing.status()["slowdown"]))
        if program[0] in DIAGNOSTICS:
            told, _ = standing.ask("diagnose", node=node, command=list(program))
            click.echo(told["said"], nl=False)
            sys.exit(told["code"])
        sys.exit(run_there(standing, node, program))
