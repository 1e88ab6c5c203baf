"""Imports and exports of configurations of SONiC's switches, in the tests' folders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emu.imports.report import Outcome
from emu.imports.spec_text import spec_text
from emu.sonic.config_db import Config, Findings, read_config
from emu.sonic.mapping import Imported, import_folder
from emu.sonic.writing import export
from emu.spec.model import Spec, spec_from_text
from tests.support.sonic_configs import write


def imported(folder: Path, configs: Mapping[str, Any], *, bgp: bool = False) -> Imported:
    """The import of configurations that are written into a folder first."""
    return import_folder(write(folder, configs), bgp=bgp)


def spec_of(data: Mapping[str, Any], name: str = "imported") -> Spec:
    """The spec as its text has it, not only as keys."""
    return spec_from_text(spec_text(data, []).encode(), source=f"{name}.emu.yml")


def exported(spec: Spec, folder: Path) -> Path:
    """The folder with the export of a spec."""
    for file, written in export(spec).items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written.text)
    return folder


def config_of(folder: Path, file: str) -> Config:
    """A file of an export, as an import reads it."""
    findings = Findings()
    config = read_config((folder / file).read_bytes(), file, "", findings)
    findings.check()
    return config


def tables(folder: Path, file: str) -> dict[str, dict[str, dict[str, str]]]:
    """The tables of an export as they are in the file."""
    found: dict[str, dict[str, dict[str, str]]] = json.loads((folder / file).read_text())
    return found


def differing_rows(result: Imported, folder: Path) -> list[str]:
    """The rows that were taken and that an export has otherwise."""
    taken = {line.row for line in result.report.lines if line.outcome is Outcome.TAKEN}
    found = []
    for node in result.fabric.switches:
        if node.config is None:
            continue
        back = config_of(folder, node.config.file)
        for entry in node.config.entries:
            for field in entry.fields:
                keys = [
                    key for key in entry.keys if _is_there(key, node.ports.values(), entry.table)
                ]
                others = [back.at(entry.table, *key) for key in keys]
                if entry.row(field) in taken and not all(
                    other is not None and other.values.get(field) == entry.values.get(field)
                    for other in others
                ):
                    found.append(str(entry.row(field)))
    return found


def _is_there(key: tuple[str, ...], cabled: Any, table: str) -> bool:
    return not key[0].startswith("Ethernet") or key[0] in cabled
