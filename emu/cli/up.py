"""`emu up SPEC`: brings up a background lab."""

from __future__ import annotations

from pathlib import Path

import click

from emu.cli.notes import TIME_OF_PROGRAMS_IN_EXACT_LABS, print_note, time_of_programs
from emu.cli.options import settings_option, spec_argument
from emu.clocks import EXACT, REAL
from emu.errors import UsageError
from emu.spec.model import Spec, load_spec


@click.command("up")
@spec_argument
@settings_option
@click.option("--name", metavar="NAME", help="Name of the lab.  [default: the spec's name]")
@click.option(
    "--clock",
    type=click.Choice([REAL.name, EXACT.name]),
    default=REAL.name,
    show_default=True,
    help="real: emulated time passes with this machine's, slower. exact: it passes only while "
    "there is traffic, waits for every frame, and can be paused (`emu pause`, `emu step`).",
)
def command(path: Path, settings: tuple[str, ...], name: str | None, clock: str) -> None:
    """Bring SPEC's fabric up and leave it running, without traffic, until `emu down`."""
    from emu.daemon.folder import why_elsewhere

    spec = load_spec(path, settings if name is None else (*settings, f"name={name}"))
    if elsewhere := why_elsewhere():
        print_note(elsewhere)
    if clock == EXACT.name:
        _bring_up_exact(spec)
    else:
        _bring_up_real(spec)


def _bring_up_real(spec: Spec) -> None:
    from emu.daemon.up import bring_up
    from emu.runtime.real import slowdown_for

    slowdown, why = slowdown_for(spec, print_note)
    for note in why:
        print_note(note)

    def tell_up() -> None:
        click.echo(f"{spec.name} is up, {slowdown:g} times slower than real. Try:")
        click.echo(
            f"  emu exec {_first_host(spec)} -- ip address      emu traffic start      emu watch"
        )
        _tell_management(spec)
        click.echo(f"  emu down {spec.name}")
        click.echo(time_of_programs(slowdown))

    bring_up(spec, slowdown, print_note, tell_up)


def _bring_up_exact(spec: Spec) -> None:
    from emu.daemon.up import bring_up_exact
    from emu.runtime.exact import obstacle

    if why_not := obstacle(spec):
        raise UsageError(str(why_not))

    def tell_up() -> None:
        click.echo(f"{spec.name} is up; its time stands at 0 and runs with traffic. Try:")
        click.echo("  emu pause      emu traffic start      emu step 10us      emu continue")
        _tell_management(spec)
        click.echo(f"  emu down {spec.name}")
        click.echo(TIME_OF_PROGRAMS_IN_EXACT_LABS)

    bring_up_exact(spec, print_note, tell_up)


def _tell_management(spec: Spec) -> None:
    if spec.management is not None:
        host = _first_host(spec)
        click.echo(f"  emu exec mgmt -- ping {host}      emu reachability")


def _first_host(spec: Spec) -> str:
    return spec.topology.build().hosts[0].name
