"""Messages to the user while a verb works. They go to stderr; stdout is for results."""

from __future__ import annotations

import click


def print_note(text: str) -> None:
    click.echo(text, err=True)


def time_of_programs(slowdown: float) -> str:
    """How to convert the measurements of programs on a lab's hosts to emulated time."""
    return (
        f"programs on hosts measure real time: multiply their rates by {slowdown:g}, "
        f"divide their times by it"
    )
