"""`emu up SPEC`: brings up a background lab."""

from __future__ import annotations

from pathlib import Path

import click

from emu.cli.notes import print_note, time_of_programs
from emu.cli.options import settings_option, spec_argument
from emu.spec.model import load_spec


@click.command("up")
@spec_argument
@settings_option
@click.option("--name", metavar="NAME", help="Name of the lab.  [default: the spec's name]")
def command(path: Path, settings: tuple[str, ...], name: str | None) -> None:
    """Bring SPEC's fabric up and leave it running, without traffic, until `emu down`."""
    from emu.daemon.folder import why_elsewhere
    from emu.daemon.up import bring_up
    from emu.runtime.real import slowdown_for

    spec = load_spec(path, settings if name is None else (*settings, f"name={name}"))
    if elsewhere := why_elsewhere():
        print_note(elsewhere)
    slowdown, why = slowdown_for(spec, print_note)
    for note in why:
        print_note(note)
    first = spec.topology.build().hosts[0].name

    def tell_up() -> None:
        click.echo(f"{spec.name} is up, {slowdown:g} times slower than real. Try:")
        click.echo(f"  emu exec {first} -- ip address      emu traffic start      emu watch")
        click.echo(f"  emu down {spec.name}")
        click.echo(time_of_programs(slowdown))

    bring_up(spec, slowdown, print_note, tell_up)
