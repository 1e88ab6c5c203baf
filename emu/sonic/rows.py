"""The rows of the tables that an export writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby

from emu.sonic.tables import TABLES, Reference

Fields = dict[str, str]
Tables = dict[str, dict[str, Fields]]
"""Table -> key -> field -> value, as in a config_db.json."""
Names = Mapping[str, Mapping[str, str]]
"""Table -> the name that an export chooses for a row -> another name for it."""


def named(tables: Tables, table: str, first: str, fields: Fields) -> str:
    """The name of the row with these fields, which is added unless there is one.

    The first row gets the name `first`, others `first_2` and so on.
    """
    rows = tables.setdefault(table, {})
    for name in _numbered(first):
        if rows.setdefault(name, fields) == fields:
            return name
    raise AssertionError("numbers do not end")


def _numbered(first: str) -> Iterator[str]:
    """`scheduler.0` is followed by `scheduler.1`, `AZURE` by `AZURE_2`."""
    if first.endswith(".0"):
        yield from (f"{first[:-1]}{number}" for number in count())
    yield first
    yield from (f"{first}_{number}" for number in count(2))


def add(tables: Tables, table: str, key: str, fields: Fields) -> None:
    """Adds fields to a row. Rows without fields are not written."""
    if fields:
        tables.setdefault(table, {}).setdefault(key, {}).update(fields)


def spans(numbers: Iterable[int]) -> list[str]:
    """`0-2` and `5` for 0, 1, 2 and 5."""
    found = []
    for _, group in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        own = [number for _, number in group]
        found.append(str(own[0]) if len(own) == 1 else f"{own[0]}-{own[-1]}")
    return found


def renamed(tables: Tables, names: Names) -> Tables:
    """The tables with other names of rows, also where fields refer to them."""
    whole = {table: whole_names(names.get(table, {}), list(rows)) for table, rows in tables.items()}
    return {
        table: {
            whole[table][key]: _renamed_fields(table, fields, whole) for key, fields in rows.items()
        }
        for table, rows in tables.items()
    }


def whole_names(names: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The name of every row. One whose name another row gets has a number added to its own."""
    given = {key: names[key] for key in keys if key in names}
    taken = set(given.values())
    whole = {}
    for key in keys:
        if key not in given:
            whole[key] = next(name for name in _numbered(key) if name not in taken)
            taken.add(whole[key])
    return whole | given


def _renamed_fields(table: str, fields: Fields, whole: Names) -> Fields:
    result = {}
    for field, value in fields.items():
        kind = TABLES[table].fields.get(field)
        own = whole.get(kind.table, {}) if isinstance(kind, Reference) else {}
        result[field] = own.get(value, value)
    return result
