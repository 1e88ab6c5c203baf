"""docs/reference/python.md: the modules that programs outside of the project may import.

Texts are docstrings. An attribute is explained by the text below it, as everywhere in this
project.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from textwrap import dedent
from types import ModuleType
from typing import Any

from emu.explain.pages import head, table

MODULES = {
    "emu.scripting": None,
    "emu.scripting.frames": (
        "flows",
        "requests",
        "ports",
        "hosts",
        "totals",
        "series",
        "checks",
    ),
    "emu.testing": None,
    "emu.rdma": None,
    "emu.runtime": None,
    "emu.spec.model": ("load_spec", "spec_from_text", "spec_from_mapping"),
    "emu.measure.recording": ("Recording",),
    "emu.measure.records": ("FlowRecord",),
    "emu.errors": ("SpecError", "UsageError", "HostError", "FabricError", "CheckFailed"),
}
"""Module -> its public names; None where `__all__` lists them."""


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from head(
        "Python API",
        "The modules that programs and tests of your own may import. Everything else may change "
        "from one release to the next.",
    )
    for name, chosen in MODULES.items():
        module = import_module(name)
        yield from ("", f"## {name}", "", _doc(module))
        for public in chosen or module.__all__:
            yield from _entry(public, getattr(module, public))


def _entry(name: str, obj: Any) -> Iterator[str]:
    if isinstance(obj, type):
        yield from _class(name, obj)
    elif callable(obj):
        yield from ("", f"### {name}", "", f"    {name}{_signature(obj)}", "", _doc(obj))


def _class(name: str, obj: type) -> Iterator[str]:
    yield from ("", f"### {name}", "", _doc(obj))
    if issubclass(obj, enum.Enum):
        yield from ("", ", ".join(f"`{member}`" for member in obj.__members__))
        return
    attributes = [(f"`{own}`", kind, text) for own, kind, text in _attributes(obj)]
    if attributes:
        yield from table(("attribute", "type", "meaning"), attributes)
    methods = [(f"`{own}{_signature(call)}`", _doc(call)) for own, call in _methods(obj)]
    if methods:
        yield from table(("method", "meaning"), methods)


def _attributes(obj: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and the text below, of annotated attributes and of properties."""
    (body,) = ast.parse(dedent(inspect.getsource(obj))).body
    assert isinstance(body, ast.ClassDef)
    for statement, after in zip(body.body, [*body.body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if not statement.target.id.startswith("_"):
                kind = f"`{ast.unparse(statement.annotation)}`"
                yield statement.target.id, kind, _text(after)
        elif isinstance(statement, ast.FunctionDef) and _is_property(statement):
            kind = f"`{ast.unparse(statement.returns)}`" if statement.returns else ""
            yield statement.name, kind, " ".join((ast.get_docstring(statement) or "").split())


def _is_property(function: ast.FunctionDef) -> bool:
    names = [ast.unparse(decorator) for decorator in function.decorator_list]
    return not function.name.startswith("_") and any("property" in name for name in names)


def _methods(obj: type) -> Iterator[tuple[str, Any]]:
    """Its own, not those that it inherits from Python or a library."""
    for name, method in vars(obj).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield name, method


def _signature(call: Any) -> str:
    """Without self; a default that is a function by its name."""
    text = str(inspect.signature(call)).replace("'", "")
    text = re.sub(r"<function (\w+) at 0x\w+>", r"\1", text)
    return re.sub(r"^\(self(, )?", "(", text)


def _doc(obj: Any) -> str:
    own = obj.__doc__ if isinstance(obj, type | ModuleType) else inspect.getdoc(obj)
    if isinstance(obj, type) and own and own.startswith(f"{obj.__name__}("):
        return ""  # dataclasses write the signature there
    return inspect.cleandoc(own or "")


def _text(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""
