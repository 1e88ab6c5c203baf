"""The CONFIG_DB of one switch: JSON text -> rows whose values are checked.

    {"BUFFER_PG": {"Ethernet0,Ethernet4|3-4": {"profile": "pg_lossless"}}}
       table        key of an Entry              field       value

A key with several ports or a range is one entry that is found by each port and number:
`config.at("BUFFER_PG", "Ethernet4", "3")`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Any

from emu.errors import SpecError
from emu.imports.report import Row
from emu.sonic.tables import IGNORED_TABLES, TABLES, Reference, Table

Key = tuple[str, ...]
"""The parts of a key that stand for one port and number: `("Ethernet0", "3")`."""

_MISSPELT = 0.85
"""How similar a name must be to a known one to be taken for a mistake."""


@dataclass(frozen=True)
class Entry:
    """A row of a table: its fields as text, and the values of those that emu reads."""

    file: str
    table: str
    key: str
    fields: dict[str, str]
    values: dict[str, Any]
    keys: tuple[Key, ...]
    """What the key stands for."""

    def row(self, field: str = "") -> Row:
        return Row(self.file, self.table, self.key, field)

    def get(self, field: str) -> Any:
        """The value of a field that emu reads; None: it is not given."""
        return self.values.get(field)

    @property
    def map(self) -> dict[int, int]:
        """The entries of a map, e.g. DSCP -> TC."""
        return {int(name): value for name, value in self.values.items()}


class Findings:
    """All mistakes in the files, which are reported together."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, row: Row, what: str) -> None:
        """Notes a mistake at a row, and the remedy."""
        self._lines.append(f"{row}: {what}" if row.path else f"{row.file}: {what}")

    def check(self) -> None:
        """Raises SpecError if any mistakes were noted."""
        if self._lines:
            raise SpecError(list(dict.fromkeys(self._lines)))


class Config:
    """The rows of one switch's configuration."""

    def __init__(self, file: str, folder_name: str, entries: Sequence[Entry]) -> None:
        """`folder_name`: the switch's name as its file or folder has it."""
        self.file = file
        self.entries = tuple(entries)
        self._by_key: dict[tuple[str, Key], Entry] = {}
        for entry in entries:
            for key in entry.keys:
                self._by_key[entry.table, key] = entry
        self.name = str(self.metadata("hostname") or folder_name)

    def at(self, table: str, *key: str) -> Entry | None:
        """The entry that holds for a key, e.g. a port and a queue."""
        return self._by_key.get((table, key))

    def table(self, name: str) -> list[Entry]:
        """The entries of a table, in the order of the file."""
        return [entry for entry in self.entries if entry.table == name]

    def metadata(self, field: str) -> Any:
        """A field of the switch itself."""
        entry = self.at("DEVICE_METADATA", "localhost")
        return None if entry is None else entry.get(field)

    def referred(self, entry: Entry | None, field: str) -> Entry | None:
        """The row that a field names; None: it names none."""
        if entry is None or entry.get(field) is None:
            return None
        kind = TABLES[entry.table].fields[field]
        assert isinstance(kind, Reference), "the field refers to a row"
        return self.at(kind.table, entry.get(field))

    @property
    def ports(self) -> list[str]:
        """The ports of the table PORT, by number."""
        return sorted((entry.key for entry in self.table("PORT")), key=natural)


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key by numbers within names: Ethernet4 precedes Ethernet10."""
    parts = re.split("([0-9]+)", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def read_config(text: bytes, file: str, folder_name: str, findings: Findings) -> Config:
    """The configuration in a text. Mistakes go to `findings`; rows with mistakes are left out."""
    tables = _document(text, file, findings)
    reader = _Reader(file, findings)
    entries = list(reader.entries(tables))
    if tables and not any(name in TABLES for name in tables):
        known = ", ".join(list(TABLES)[:4])
        findings.add(Row(file, ""), f"has none of the tables of a CONFIG_DB ({known}, ...)")
    config = Config(file, folder_name, entries)
    _check_references(config, findings)
    return config


def _document(text: bytes, file: str, findings: Findings) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        findings.add(Row(f"{file}:{error.lineno}:{error.colno}", ""), f"is not JSON: {error.msg}")
        return {}
    except (ValueError, RecursionError) as error:
        why = "it is not text" if isinstance(error, UnicodeDecodeError) else "it is nested too deep"
        findings.add(Row(file, ""), f"is not JSON: {why}")
        return {}
    if not isinstance(found, _Pairs):
        findings.add(Row(file, ""), 'is no CONFIG_DB: it must be an object of tables, {"PORT": ...')
        return {}
    return _unique(found, (file,), findings)


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with all of its pairs: a name that stands twice would hide a mistake."""


def _unique(pairs: _Pairs, path: tuple[str, ...], findings: Findings) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            findings.add(Row(*_at(path, name)), "is there twice; keep one of them")
        is_object = isinstance(value, _Pairs)
        found[name] = _unique(value, (*path, name), findings) if is_object else value
    return found


def _at(path: tuple[str, ...], name: str) -> tuple[str, str, str, str]:
    """The place of a name below a path: file, table, key, field."""
    file, table, key, field, *_ = (*path, name, "", "", "")
    return file, table, key, field


class _Reader:
    """Turns the tables of one file into entries."""

    def __init__(self, file: str, findings: Findings) -> None:
        self._file = file
        self._findings = findings

    def entries(self, tables: dict[str, Any]) -> Iterator[Entry]:
        for name, rows in tables.items():
            near = "" if name in IGNORED_TABLES else _near(name, list(TABLES))
            if near:
                self._wrong((name,), f"there is no such table (did you mean {near!r}?)")
            elif not isinstance(rows, dict):
                self._wrong((name,), "must be an object of rows by key")
            elif name in TABLES:
                yield from self._table(name, TABLES[name], rows)
            else:
                yield Entry(self._file, name, "", {}, {}, ())

    def _table(self, name: str, table: Table, rows: dict[str, Any]) -> Iterator[Entry]:
        first: dict[Key, str] = {}
        for key, fields in rows.items():
            if not isinstance(fields, dict):
                self._wrong((name, key), 'must be an object of fields, e.g. {"profile": "..."}')
                continue
            keys = self._keys(name, key, table)
            for own in keys:
                if first.setdefault(own, key) != key:
                    self._wrong(
                        (name, key),
                        f"{'|'.join(own)} has a row already, {first[own]}; keep one of them",
                    )
            texts = self._texts(name, key, fields)
            values = self._values(name, key, table, texts)
            yield Entry(self._file, name, key, texts, values, keys)

    def _keys(self, name: str, key: str, table: Table) -> tuple[Key, ...]:
        parts = [part.strip() for part in key.split("|")]
        if len(parts) != (2 if table.numbers else 1):
            if name != "BGP_NEIGHBOR":
                like = "PORT|NUMBER, e.g. Ethernet0|3-4" if table.numbers else "one name"
                self._wrong((name, key), f"a key of this table is {like}")
            return ()
        firsts = [part.strip() for part in parts[0].split(",")] if table.by_port else [parts[0]]
        if not table.numbers:
            return tuple((first,) for first in firsts)
        return tuple(product(firsts, self._range(name, key, parts[1], table.numbers)))

    def _range(self, name: str, key: str, text: str, numbers: int) -> list[str]:
        match = re.fullmatch("([0-9]{1,2})(?:-([0-9]{1,2}))?", text)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not low <= high < numbers:
            what = f"a number or range from 0 to {numbers - 1} like 3-4"
            self._wrong((name, key), f"{text!r} is not {what}")
            return []
        return [str(number) for number in range(low, high + 1)]

    def _texts(self, name: str, key: str, fields: dict[str, Any]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for field, value in fields.items():
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                texts[field.removesuffix("@")] = ",".join(value)
            elif isinstance(value, str) or type(value) is int:
                texts[field] = str(value)
            else:
                self._wrong((name, key, field), 'must be text, e.g. "100000"')
        texts.pop("NULL", None)  # what stands for a row without fields
        return texts

    def _values(self, name: str, key: str, table: Table, texts: dict[str, str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field, text in texts.items():
            kind = table.fields.get(field)
            near = "" if table.each else _near(field, [*table.fields, *table.ignored])
            if near:
                self._wrong((name, key, field), f"there is no such field (did you mean {near!r}?)")
            try:
                if table.each:
                    values[str(table.each[0].parse(field))] = table.each[1].parse(text)
                elif kind is not None:
                    values[field] = kind.parse(text)
            except ValueError as error:
                self._wrong((name, key, field), str(error))
        return values

    def _wrong(self, path: tuple[str, ...], what: str) -> None:
        self._findings.add(Row(self._file, *path), what)


def _near(name: str, known: Sequence[str]) -> str:
    """The known name of which this one seems to be a misspelling."""
    if name in known:
        return ""
    return next(iter(get_close_matches(name, known, n=1, cutoff=_MISSPELT)), "")


def _check_references(config: Config, findings: Findings) -> None:
    for entry in config.entries:
        if entry.table in TABLES:
            _rows_exist(config, entry, findings)
            _ports_exist(config, entry, findings)


def _rows_exist(config: Config, entry: Entry, findings: Findings) -> None:
    for field, kind in TABLES[entry.table].fields.items():
        name = entry.get(field)
        if not isinstance(kind, Reference) or name is None or name in kind.otherwise:
            continue
        if config.at(kind.table, name) is None:
            known = [row.key for row in config.table(kind.table)]
            findings.add(
                entry.row(field),
                f"there is no {kind.table}|{name}{_there_is(known)}; add it, or name another",
            )


def _ports_exist(config: Config, entry: Entry, findings: Findings) -> None:
    table = TABLES[entry.table]
    if table.by_port and entry.table != "PORT":
        for port in dict.fromkeys(key[0] for key in entry.keys):
            if port not in table.words and config.at("PORT", port) is None:
                text = f"there is no PORT|{port}; add it, or take this row out"
                findings.add(entry.row(), text)
    for port in entry.values if entry.table == "CABLE_LENGTH" else ():
        if config.at("PORT", port) is None:
            text = f"there is no PORT|{port}; add it, or take this field out"
            findings.add(entry.row(port), text)


def _there_is(known: Sequence[str]) -> str:
    return f" (there is {', '.join(known[:6])})" if known else ""
