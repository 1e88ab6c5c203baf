"""`emu schema [DOCUMENT]`: the JSON schema of what people write and of what programs read."""

from __future__ import annotations

import click

DOCUMENTS = (
    *("spec", "summary", "comparison", "bench-report"),
    *("perf", "sweep", "tune", "sensitivity", "convergence", "decision"),
)


@click.command("schema")
@click.argument("document", type=click.Choice(DOCUMENTS), default="spec")
def command(document: str) -> None:
    """Print the JSON schema of spec files, with a description of every key; or of a document that
    a command writes or prints for programs, with the meaning of every field."""
    if document == "spec":
        from emu.spec.schema import schema_text

        text = schema_text()
    else:
        from emu.explain import results_schema

        text = results_schema.schema_text(document)
    click.echo(text, nl=False)
