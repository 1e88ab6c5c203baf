"""`emu shell SPEC`: Mininet's prompt in the spec's fabric."""

from __future__ import annotations

from pathlib import Path

import click

from emu.lab.messages import Request
from emu.lab.namespace import run_in_lab
from emu.spec.load import load_spec


@click.command("shell")
@click.argument("path", metavar="SPEC", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the spec, e.g. --set slowdown=1000. May be repeated.",
)
def shell(path: Path, settings: tuple[str, ...]) -> None:
    """Build the fabric without its traffic and open Mininet's prompt: h1 ping h5, net, help."""
    spec = load_spec(path, settings)
    request = Request("shell", spec.to_json(), str(Path.cwd()))
    run_in_lab(request, on_progress=lambda told: click.echo(told.text, err=True), terminal=True)
