"""What is meant for people while a verb works: it goes to stderr, stdout is for results."""

from __future__ import annotations

import click


def say(text: str) -> None:
    click.echo(text, err=True)
