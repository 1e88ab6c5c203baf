"""`emu schema [DOCUMENT]`: the JSON schema of what people write and of what programs read."""

from __future__ import annotations

import click

_DOCUMENTS = ("spec", "summary", "bench-report", "decision")


@click.command("schema")
@click.argument(
    "document", type=click.Choice(["spec", "summary", "bench-report", "decision"]), default="spec"
)
def command(document: str) -> None:
    """Print the JSON schema of spec files, with a description of every key; or of the summary.json
    of a run, the bench-report.json of a benchmark or the decide.json of a decision, with the
    meaning of every field."""
    if document == "spec":
        from emu.spec.schema import schema_text

        text = schema_text()
    else:
        from emu.explain import results_schema

        text = results_schema.schema_text(document)
    click.echo(text, nl=False)
