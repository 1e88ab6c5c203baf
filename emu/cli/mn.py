"""`emu mn WORDS...`: what `mn --custom emu/mn.py --link emu ...` becomes; nobody types this."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

_AS_TYPED = {"ignore_unknown_options": True, "help_option_names": []}


@click.command("mn", hidden=True, context_settings=_AS_TYPED)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Run Mininet's own command, its path first, on an emulated fabric."""
    from emu.lab.ipc.messages import Request
    from emu.lab.namespace import run_in_lab

    mn = shutil.which(words[0]) or words[0]
    request = Request("mn", "", str(Path.cwd()), {"words": [mn, *words[1:]]})
    run_in_lab(request, on_progress=lambda told: click.echo(told.text, err=True), terminal=True)
