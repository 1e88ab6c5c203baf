"""`emu shell SPEC`: Mininet's prompt in the spec's fabric."""

from __future__ import annotations

from pathlib import Path

import click

from emu.cli.options import settings_option, spec_argument
from emu.cli.say import say
from emu.spec.model import load_spec


@click.command("shell")
@spec_argument
@settings_option
def command(path: Path, settings: tuple[str, ...]) -> None:
    """Build SPEC's fabric without its traffic and open Mininet's prompt: h1 ping h5, net, help."""
    from emu.lab.live import run_at
    from emu.lab.messages import Request
    from emu.lab.namespace import run_in_lab
    from emu.lab.slowdown import choose_slowdown

    spec = load_spec(path, settings)
    slowdown, why = choose_slowdown(spec, spec.topology.build(), run_at, say)
    for note in why:
        say(note)
    request = Request("shell", spec.to_json(), str(Path.cwd()), {"slowdown": slowdown})
    run_in_lab(request, on_progress=lambda told: click.echo(told.text, err=True), terminal=True)
