"""`emu schema`: the JSON schema of spec files."""

from __future__ import annotations

import click

from emu.spec.schema import schema_text


@click.command("schema")
def command() -> None:
    """Print the JSON schema of spec files, with a description of every key."""
    click.echo(schema_text(), nl=False)
