"""What an export gives back of a configuration that was imported.

The report calls a row taken only if an export writes the same row again. Names of rows that differ
from those that an export chooses are kept in `devices.NAME.names`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from emu.imports.report import Outcome, Report
from emu.sonic.config_db import Config, Entry, Findings, Key, read_config
from emu.sonic.rows import Tables, renamed, whole_names
from emu.sonic.tables import TABLES, Reference
from emu.sonic.writing import tables_of
from emu.spec.scenario import Spec

_POOLS = "BUFFER_POOL"
"""Profiles refer to pools, so that the names of profiles come first."""


def own_names(spec: Spec, switch: str, config: Config) -> dict[str, dict[str, str]]:
    """Table -> the name that an export chooses for a row -> the name in the configuration.

    Rows correspond if the same place refers to them, e.g. the scheduler of a port's queue.
    """
    tables = tables_of(spec, switch, {}).tables
    names: dict[str, dict[str, str]] = {}
    for stage in (lambda table: table != _POOLS, lambda table: table == _POOLS):
        exported = _config(renamed(tables, names))
        names |= _corresponding(exported, config, stage)
    whole = {table: whole_names(own, list(tables[table])) for table, own in names.items()}
    return {
        table: {ours: theirs for ours, theirs in own.items() if ours != theirs}
        for table, own in whole.items()
    }


def _corresponding(
    exported: Config, config: Config, of_stage: Callable[[str], bool]
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for table, key, field, kind in _references(exported):
        ours, theirs = exported.at(table, *key), config.at(table, *key)
        name = theirs.get(field) if theirs is not None else None
        if of_stage(kind.table) and ours is not None and name and name not in kind.otherwise:
            found.setdefault(kind.table, {}).setdefault(ours.get(field), name)
    return {
        table: own
        for table, names in found.items()
        if (own := {ours: theirs for ours, theirs in _one_to_one(names) if ours != theirs})
    }


def note_returned(
    spec: Spec, switch: str, config: Config, cabled: set[str], report: Report
) -> None:
    """Calls those rows approximated that were taken, and that an export does not give back.

    `cabled`: the ports that have a cable.
    """
    exported = _config(tables_of(spec, switch).tables)
    for entry in config.entries:
        for field in entry.fields:
            row = entry.row(field)
            if report.outcome(row) is Outcome.TAKEN:
                differing = _differing(entry, field, exported, cabled)
                if differing is not None:
                    report.approximated(row, f"an export writes {differing}")


def _config(tables: Tables) -> Config:
    """The rows of an export, as they would be read."""
    findings = Findings()
    config = read_config(json.dumps(tables).encode(), "the export", "", findings)
    findings.check()
    return config


def _references(config: Config) -> Iterator[tuple[str, Key, str, Reference]]:
    """Each field that names a row, for each port and number; those of lossless profiles first."""
    for entry in sorted(config.entries, key=lambda own: "xoff" not in own.fields):
        for field, kind in TABLES[entry.table].fields.items():
            if isinstance(kind, Reference) and entry.get(field) is not None:
                for key in entry.keys:
                    yield entry.table, key, field, kind


def _one_to_one(names: dict[str, str]) -> list[tuple[str, str]]:
    """The pairs of which each side stands in one pair only."""
    values = list(names.values())
    return [(ours, theirs) for ours, theirs in names.items() if values.count(theirs) == 1]


def _differing(entry: Entry, field: str, exported: Config, cabled: set[str]) -> str | None:
    """What an export has otherwise; None: it has the same. Ports without a cable do not count."""
    table = TABLES[entry.table]
    name = str(table.each[0].parse(field)) if table.each else field
    if entry.table == "CABLE_LENGTH" and field not in cabled:
        return None
    for key in entry.keys:
        if table.by_port and key[0] not in cabled and key[0] not in table.words:
            continue
        other = exported.at(entry.table, *key)
        value = None if other is None else other.values.get(name)
        if value != entry.values.get(name):
            return "no such row" if other is None or value is None else other.fields[name]
    return None
