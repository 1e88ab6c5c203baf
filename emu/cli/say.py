"""What is meant for people while a verb works: it goes to stderr, stdout is for results."""

from __future__ import annotations

import click


def say(text: str) -> None:
    click.echo(text, err=True)


def time_of_programs(slowdown: float) -> str:
    """What programs on a lab's hosts measure, whose clocks are real, in the fabric's terms."""
    return (
        f"programs on hosts live in real time: multiply rates that they measure by {slowdown:g}, "
        f"divide times by it"
    )
