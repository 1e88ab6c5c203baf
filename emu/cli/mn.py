"""`emu mn WORDS...`: an internal verb that `mn --custom emu/mn.py --link emu ...` runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

_AS_TYPED = {"ignore_unknown_options": True, "help_option_names": []}


@click.command("mn", hidden=True, context_settings=_AS_TYPED)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Run Mininet's own command, its path first, on an emulated fabric."""
    from emu.lab.ipc.jobs import RunMininet
    from emu.lab.namespace import run_in_lab

    mn = shutil.which(words[0]) or words[0]
    job = RunMininet((mn, *words[1:]), str(Path.cwd()))
    run_in_lab(job, on_progress=lambda one: click.echo(one.text, err=True), terminal=True)
