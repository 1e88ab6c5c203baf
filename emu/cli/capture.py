"""`emu capture PORT`: captures the packets on a cable of a running lab."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from emu.cli.notes import print_note
from emu.cli.options import lab_option
from emu.errors import EmuError, UsageError
from emu.output_dir import new_file
from emu.streams import ReaderGone


@click.command("capture")
@lab_option
@click.argument("port")
@click.option(
    "-w", "--write", "path", metavar="FILE", help="File to write; - is stdout.  [default: -]"
)
@click.option("-c", "--count", type=click.IntRange(1), help="Stop after this number of frames.")
@click.option(
    "--since-start",
    is_flag=True,
    help="Begin with the packets kept since the lab's start: the first 32 MB of the ports in the "
    "spec's `capture:`.",
)
def command(
    lab: str | None, port: str, path: str | None, count: int | None, since_start: bool
) -> None:
    """Capture the cable in PORT, e.g. leaf1:h1, in both directions until Ctrl-C.

    Writes pcapng with emulated time stamps; on InfiniBand it holds ERF records:

        emu capture leaf1:h1 -w h1.pcapng

        emu capture leaf1:h1 | wireshark -k -i -
    """
    from emu.daemon.client import LabClient
    from emu.daemon.tap_client import capture_port

    if path is None and sys.stdout.isatty():
        raise UsageError("a terminal cannot show packets; add -w FILE, or | wireshark -k -i -")
    try:
        with LabClient(lab) as client:
            done = capture_port(
                client, port, _opened(path or "-"), limit=count, since_start=since_start
            )
    except (BrokenPipeError, ReaderGone):
        print_note("the reader of the capture has ended")
        return
    print_note(f"{done.frames:,} frames captured")
    if done.missed:
        print_note(f"{done.missed:,} are missing: they arrived faster than they were written")


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Opens the file, or stdout. Raises EmuError if it cannot be written, but BrokenPipeError if
    its reader has ended."""
    try:
        if path == "-":
            yield sys.stdout.buffer
        else:
            with new_file(Path(path), at_once=True) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise EmuError(f"{path}: {error.strerror}; the capture ends here") from None
