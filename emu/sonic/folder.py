"""The folder of `emu import sonic`: a configuration for each switch.

    FOLDER/leaf1/config_db.json     or     FOLDER/leaf1.json

A folder that has a config_db.json itself is that of a single switch. A switch is called as its
`hostname` says (DEVICE_METADATA), else as its folder or file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from emu.errors import UsageError
from emu.imports.report import Row
from emu.regular import read_regular
from emu.sonic.config_db import Config, Findings, natural, read_config

CONFIG_NAME = "config_db.json"
LARGEST_FILE = 16_000_000
"""Bytes. Those of large switches have some hundred thousand."""


def read_folder(folder: Path) -> list[Config]:
    """The configurations of all switches, by name.

    Raises UsageError when nothing can be read, SpecError with all mistakes in the files.
    """
    findings = Findings()
    configs = [
        read_config(_content(path), str(path.relative_to(folder)), name, findings)
        for name, path in _files(folder)
    ]
    findings.check()
    first: dict[str, Config] = {}
    for config in configs:
        other = first.setdefault(config.name, config)
        if other is not config:
            findings.add(
                Row(config.file, "DEVICE_METADATA", "localhost", "hostname"),
                f"{config.name!r} is the name of {other.file}, too; give each switch its own",
            )
    findings.check()
    return sorted(configs, key=lambda config: natural(config.name))


def _files(folder: Path) -> list[tuple[str, Path]]:
    """The name of each switch, and its file."""
    try:
        found = list(_search(folder))
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read ({error.strerror})") from None
    if not found:
        raise UsageError(
            f"{folder}: has no configuration; put each switch's into {folder}/SWITCH/"
            f"{CONFIG_NAME} or {folder}/SWITCH.json"
        )
    return found


def _search(folder: Path) -> Iterator[tuple[str, Path]]:
    if (folder / CONFIG_NAME).exists():
        yield folder.absolute().name, folder / CONFIG_NAME
        return
    for path in sorted(folder.iterdir()):
        if path.suffix == ".json":
            yield path.stem, path
        elif (path / CONFIG_NAME).exists():
            yield path.name, path / CONFIG_NAME


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
