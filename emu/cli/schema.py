"""`emu schema [spec|summary]`: the JSON schema of what people write and of what programs read."""

from __future__ import annotations

import click


@click.command("schema")
@click.argument("document", type=click.Choice(["spec", "summary"]), default="spec")
def command(document: str) -> None:
    """Print the JSON schema of spec files, with a description of every key; or of the summary.json
    of a run, with the meaning of every field."""
    if document == "spec":
        from emu.spec.schema import schema_text
    else:
        from emu.explain.results_schema import schema_text
    click.echo(schema_text(), nl=False)
