"""SIGTERM, which batch systems and `timeout` send, ends a series of runs as Ctrl-C does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt in the body, so that finished runs are kept and shown."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interrupts_keep_runs() -> Iterator[None]:
    """The same, and says that what is done is not lost."""
    with sigterm_interrupts():
        try:
            yield
        except KeyboardInterrupt:
            click.echo("stopped; the same command goes on with the runs that are done", err=True)
            raise


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
