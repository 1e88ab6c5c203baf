"""`emu import sonic FOLDER`, `emu import containerlab FILE`: fabrics of other programs as specs.

The spec goes to stdout or to a file, the report of what became of each row to stderr.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from emu.cli.notes import print_note
from emu.errors import UsageError

C = TypeVar("C", bound=Callable[..., Any])


def _output_options(function: C) -> C:
    for option in reversed(
        (
            click.option(
                "-o",
                "--output",
                "target",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Write the spec to FILE; to stdout unless given.",
            ),
            click.option("--force", is_flag=True, help="Overwrite an existing file."),
            click.option(
                "--report",
                "report_file",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Write the report to FILE with a line for each row; stderr has it in short.",
            ),
        )
    ):
        function = option(function)
    return function


@click.group("import")
def command() -> None:
    """Make a spec of another program's configuration."""


@command.command("sonic")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--bgp",
    is_flag=True,
    help="Let BGP, by FRR, find the routes, with the files' numbers of autonomous systems.",
)
@_output_options
def sonic(
    folder: Path, bgp: bool, target: Path | None, force: bool, report_file: Path | None
) -> None:
    """Make a spec of the CONFIG_DBs of SONiC's switches in FOLDER.

    A switch's file is FOLDER/SWITCH/config_db.json or FOLDER/SWITCH.json. Each row is taken,
    approximated or ignored, and the report says why. A small workload is added.

    \b
    emu import sonic configs -o fabric.emu.yml
    emu run fabric.emu.yml
    """
    from emu.imports.spec_text import spec_text
    from emu.imports.starter_traffic import traffic_note
    from emu.sonic.mapping import import_folder

    imported = import_folder(folder, bgp=bgp)
    notes = [traffic_note(len(imported.fabric.hosts))]
    text = spec_text(imported.data, _comments(notes))
    _give(text, imported.report, notes, target, report_file, force=force)


@command.command("containerlab")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="NODE",
    help="A node of kind linux that is a switch, e.g. a router with FRR. May be repeated.",
)
@click.option("--rate", default="100Gbit", show_default=True, help="Rate of all links.")
@click.option("--length", default="5m", show_default=True, help="Length of all links.")
@_output_options
def containerlab(
    file: Path,
    switches: tuple[str, ...],
    rate: str,
    length: str,
    target: Path | None,
    force: bool,
    report_file: Path | None,
) -> None:
    """Make a spec of the nodes and links in FILE, a *.clab.yml of containerlab.

    Nodes of kind linux are hosts, all others are switches with emu's defaults, without PFC and ECN.

    \b
    emu import containerlab lab.clab.yml --rate 25Gbit -o lab.emu.yml
    """
    from emu.imports.containerlab import import_containerlab
    from emu.imports.spec_text import spec_text
    from emu.imports.starter_traffic import traffic_note

    imported = import_containerlab(file, switches=switches, rate=rate, length=length)
    notes = [traffic_note(imported.hosts), f"all links have {rate} and {length}"]
    text = spec_text(imported.data, _comments(notes))
    _give(text, imported.report, notes, target, report_file, force=force)


def _comments(notes: Iterable[str]) -> list[str]:
    made = f"Made by: {shlex.join(['emu', *sys.argv[1:]])}"
    return [
        made,
        "The report of that command says what was approximated, and what was ignored.",
        *notes,
    ]


def _give(
    text: str,
    report: Any,
    notes: Iterable[str],
    target: Path | None,
    report_file: Path | None,
    *,
    force: bool,
) -> None:
    """Writes the spec and the report."""
    for path in filter(None, (target, report_file)):
        if path.exists() and not force:
            raise UsageError(f"{path}: exists already; choose another file, or add --force")
    for line in report.short():
        print_note(line)
    for note in notes:
        print_note(note)
    if report_file is not None:
        _write(report_file, "".join(f"{line}\n" for line in report.lines))
    if target is None:
        click.echo(text, nl=False)
    else:
        _write(target, text)
        print_note(f"{target}: written; run it with `emu run {shlex.quote(str(target))}`")


def _write(path: Path, text: str) -> None:
    from emu.output_dir import write_text

    try:
        write_text(path, text)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written ({error.strerror}); choose another file"
        ) from None
