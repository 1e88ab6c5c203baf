"""`emu export sonic SPEC FOLDER`: the switches of a spec as configurations of real ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from emu.cli.notes import print_note
from emu.cli.options import settings_option, spec_argument
from emu.errors import UsageError
from emu.words import listed


@click.group("export")
def command() -> None:
    """Write a spec's switches in another system's words."""


@command.command("sonic")
@spec_argument
@click.argument("folder", type=click.Path(path_type=Path))
@settings_option
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def sonic(path: Path, folder: Path, settings: tuple[str, ...], force: bool) -> None:
    """Write the CONFIG_DB tables of a spec's switches into FOLDER.

    They are the tables of ports, cables, classes, buffers, queues, WRED, schedulers and the PFC
    watchdog, to be merged into a switch's own config_db.json. The file of a switch is
    FOLDER/SWITCH/config_db.json, or as `devices.NAME.file` of the spec says.
    """
    from emu.sonic.writing import export, left_out
    from emu.spec.model import load_spec

    spec = load_spec(path, settings)
    written = export(spec)
    _write({folder / file: own.text for file, own in written.items()}, folder, force=force)
    for file, own in written.items():
        rows = sum(map(len, own.tables.values()))
        print_note(f"{folder / file}: {rows} rows of {len(own.tables)} tables")
        for note in own.notes:
            print_note(f"  {note}")
    if left := left_out(spec):
        print_note(f"not written, since devices.NAME.file is not given: {listed(left, 8)}")
    print_note("PORT has no lanes, and addresses are missing: merge the tables into your own files")


def _write(texts: Mapping[Path, str], folder: Path, *, force: bool) -> None:
    """Writes all files. Raises UsageError before the first if one exists and must stay."""
    from emu.output_dir import make_folder, refuse_unwritable, write_text

    for path in texts:
        if path.exists() and not force:
            raise UsageError(f"{path}: exists already; choose another folder, or add --force")
    refuse_unwritable(folder, "folder")
    try:
        for path, text in texts.items():
            make_folder(path.parent)
            write_text(path, text)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be written ({error.strerror}); choose another folder"
        ) from None
