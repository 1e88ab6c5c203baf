"""The fields of summary.json and the arrays of series.npz, from the types that describe them
(`emu.report.summary`, `emu.measure.recording`, `emu.measure.requests`).

The text below a field explains it, as everywhere in this project. Python does not keep such texts
at run time, so they are read from the source.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

from emu.measure import recording, requests
from emu.report import summary


@dataclass(frozen=True)
class Field:
    name: str
    """The path in the document: `flows[].end_ns`."""
    type: str
    meaning: str

    @property
    def unit(self) -> str:
        """The unit that the end of a field's name stands for; empty for other names."""
        last = self.name.rsplit(".", 1)[-1].removesuffix("[]")
        return next((unit for end, unit in _UNITS.items() if last.endswith(end)), "")


_UNITS = {
    "_wall_ns": "ns on the wall clock",
    "cpu_ns": "ns on the wall clock",
    "_ns": "ns of emulated time",
    "_bps": "bit/s of emulated time",
    "bytes": "bytes",
    "bytes_for": "bytes",
    "_seconds": "s",
    "_packets": "packets",
    "carries": "bytes",
    "iops": "1/s of emulated time",
}


@cache
def fields() -> tuple[Field, ...]:
    """All fields, in the order of the document."""
    return tuple(fields_of(summary, "Summary"))


@cache
def arrays() -> tuple[Field, ...]:
    """All arrays of series.npz. The meaning begins with the shape."""
    kinds = ((recording, "Series"), (requests, "Requests"), (recording, "MachineSeries"))
    return tuple(
        Field(name, kind, meaning)
        for module, owner in kinds
        for (name, kind), meaning in described(module)[owner]
    )


def fields_of(module: ModuleType, name: str, prefix: str = "") -> Iterator[Field]:
    """The fields of a type of the module, and of the types inside of it; `prefix` is before their
    names."""
    classes = described(module)
    for annotation, meaning in classes[name]:
        target, kind = annotation
        inner = next((word for word in re.findall(r"\w+", kind) if word in classes), None)
        path = f"{prefix}{target}" + ("[]" if kind.startswith("list[") else "")
        yield Field(path, kind, meaning)
        if inner:
            yield from fields_of(module, inner, f"{path}.")


_ENTRY = "Entry"


@cache
def described(module: ModuleType) -> dict[str, list[tuple[tuple[str, str], str]]]:
    """Class of a module -> the names and types of its fields, with the text below each. Where the
    module imports an entry, all entries of the other module are among them."""
    classes: dict[str, list[tuple[tuple[str, str], str]]] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if (origin := _origin_of_entries(node)) is not None:
            others = described(import_module(origin))
            classes |= {name: own for name, own in others.items() if name.endswith(_ENTRY)}
        if isinstance(node, ast.ClassDef):
            inherited = [
                field for base in node.bases for field in classes.get(ast.unparse(base), ())
            ]
            classes[node.name] = [*inherited, *_fields_of(node)]
    return classes


def _origin_of_entries(node: ast.stmt) -> str | None:
    """The module from which the statement imports entries; None if it does not."""
    if isinstance(node, ast.ImportFrom) and any(own.name.endswith(_ENTRY) for own in node.names):
        return node.module
    return None


def _fields_of(node: ast.ClassDef) -> Iterator[tuple[tuple[str, str], str]]:
    for statement, after in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            kind = ast.unparse(statement.annotation).removeprefix("NotRequired[").removesuffix("]")
            if kind.count("[") > kind.count("]"):
                kind += "]"
            yield (statement.target.id, kind), _text(after)


def _text(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""
