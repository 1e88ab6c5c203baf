"""The pages of docs/reference, with a table for each section of a spec.

`emu.reference` writes them together with its own pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from emu.bmwg.catalogue import KPIS
from emu.explain import keys
from emu.explain.fields import Field, arrays
from emu.explain.keys import Key
from emu.explain.results_schema import DOCUMENTS
from emu.explain.topics import settings_of
from emu.measure.counter_notes import NOTES, PLACES
from emu.report.diagnosis import PATHOLOGIES
from emu.spec.notes import SOURCE, UNIT, default_of, values_of
from emu.spec.presets import PRESET_NOTES

_GENERATED = "<!-- Written by `make reference`; do not edit. -->"


def pages() -> dict[str, str]:
    """File name -> text of the page."""
    written = {
        "spec.md": _spec(),
        "counters.md": _counters(),
        "presets.md": _presets(),
        "results.md": _results(),
    }
    return {name: "\n".join(lines) + "\n" for name, lines in written.items()}


# --- keys of a spec ---


def _spec() -> Iterator[str]:
    yield from head(
        "Keys of a spec file",
        "Every key of a `*.emu.yml`, as in `emu explain KEY`. NAME stands for a name or a "
        "number that you choose. `switches` and `hosts` have the same keys for one role, switch "
        "or host: `switches.roles.NAME`, `switches.nodes.NAME` and `hosts.nodes.NAME`. A port "
        "(`switches.ports.NAME`) may have its own `classes`, `pfc`, `ecn`, `fecn` and "
        "`pause_response`.",
    )
    sections: dict[int, list[Key]] = {}
    for key in (keys.root(), *keys.all_keys()):
        if not key.chooses and any(child.path[-1] != keys.NAME for child in key.children):
            sections.setdefault(id(keys.resolved(key.node)), []).append(key)
    for section, *others in sections.values():
        yield from _section(section)
        if others:
            names = ", ".join(f"`{other.name}`" for other in others)
            yield from ("", f"The same keys are in {names}.")


def _section(section: Key) -> Iterator[str]:
    yield from ("", f"## {section.name or 'The file'}")
    if section.path:
        yield from ("", section.meaning)
    choices = [child for child in section.children if child.chooses]
    if not choices:
        rows = [_row(child) for child in section.children if child.path[-1] != keys.NAME]
        if rows:
            yield from table(("key", "meaning", "unit", "values", "default", "source"), rows)
        return
    yield from table(("keys for", "meaning"), [(f"`{c.path[-1]}`", c.meaning) for c in choices])
    users: dict[tuple[str, ...], list[str]] = {}
    for choice in choices:
        for child in choice.children:
            users.setdefault(_row(child), []).append(choice.path[-1])
    rows = [(row[0], _whose(names, len(choices)), *row[1:]) for row, names in users.items()]
    header = ("key", "of", "meaning", "unit", "values", "default", "source")
    yield from table(header, sorted(rows, key=lambda row: row[0]))


def _whose(names: Sequence[str], all_of_them: int) -> str:
    return "all" if len(names) == all_of_them else ", ".join(names)


def _row(key: Key) -> tuple[str, ...]:
    node = key.node
    return (
        f"`{key.path[-1]}`",
        key.meaning,
        str(node.get(UNIT, "")),
        values_of(node),
        default_of(node),
        str(node.get(SOURCE, "")),
    )


# --- counters, presets, results ---


def _counters() -> Iterator[str]:
    yield from head(
        "Counters",
        "Every counter of `summary.json`, `emu counters` and `verify: [{counter: ...}]`, as `emu "
        "explain counter NAME` prints it. N is a priority or a virtual lane. Counters of a "
        "priority or lane that nothing used are left out of a summary for ports; hosts have "
        "them all.",
    )
    for where, who in PLACES.items():
        rows = [
            (f"`{note.name}`", note.meaning, note.unit, note.source)
            for note in NOTES
            if note.where == where
        ]
        yield from ("", f"## {where}: {who}")
        yield from table(("counter", "meaning", "unit", "source of the name"), rows)


def _presets() -> Iterator[str]:
    yield from head(
        "Presets of switches",
        "What `switches: {preset: NAME}` sets, as `emu explain preset NAME` prints it. A key "
        "beside `preset` changes one of these values.",
    )
    for name, (meaning, source) in PRESET_NOTES.items():
        yield from ("", f"## {name}", "", meaning, "", f"Source: {source}.")
        rows = [(f"`switches.{key}`", f"`{value}`") for key, value in settings_of(name)]
        yield from table(("key", "value"), rows)


_ARRAYS = (
    "Samples over time and requests: NumPy's format of several arrays, for `numpy.load`. Names are "
    "strings, all else integers of 64 bits. There are n samples of p ports and f flows; requests "
    "have n rows of their own. The flow model has no arrays of queues, buffers, pauses and "
    "credits; only the real clock has those from `ledger_time_ns` on. `emu.load` reads them as "
    "frames."
)


def _results() -> Iterator[str]:
    yield from head(
        "Results: documents in JSON, series.npz and diagnoses",
        "The fields of what commands write and print for programs, the arrays of `series.npz`, and "
        "what a report may find wrong with a run (`emu explain diagnosis NAME`). `emu explain "
        "field NAME` prints a field of `summary.json`, `emu schema NAME` the JSON schema of a "
        "document.",
    )
    for name, document in DOCUMENTS.items():
        yield from ("", f"## {document.title}", "", document.origin)
        yield from _fields(own for own in document.fields() if not own.name.startswith("runs."))
        yield from ("", f"`emu schema {name}` prints the JSON schema of this document.")
        if name in _BESIDE:
            yield from _BESIDE[name]()
    yield from ("", "## Diagnoses")
    found = [(one.name, one.looks, one.cure) for one in PATHOLOGIES]
    yield from table(("name", "how it looks", "cure"), found)


def _series() -> Iterator[str]:
    yield from ("", "## series.npz", "", _ARRAYS)
    columns = [(f"`{array.name}`", array.meaning, array.unit) for array in arrays()]
    yield from table(("array", "shape and meaning", "unit"), columns)


def _kpis() -> Iterator[str]:
    kpis = [(f"`{k.key}`", k.name, k.definition, k.unit.value, k.source) for k in KPIS.values()]
    yield from ("", "Its KPIs:")
    yield from table(("key", "KPI", "definition", "unit", "source"), kpis)


_BESIDE: Mapping[str, Callable[[], Iterable[str]]] = {"summary": _series, "bench-report": _kpis}
"""What follows a document on the page."""


def _fields(of: Iterable[Field]) -> Iterator[str]:
    rows = [(f"`{field.name}`", field.meaning, f"`{field.type}`", field.unit) for field in of]
    yield from table(("field", "meaning", "type", "unit"), rows)


# --- Markdown ---


def head(title: str, about: str) -> Iterator[str]:
    yield from (f"# {title}", "", _GENERATED, "", about)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from ("", _line(header), _line(["---"] * len(header)), *map(_line, rows))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """The text of a cell on one line, with bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")
