"""Keys of a spec as the text of a file, each with its meaning from the schema above it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from emu.explain import keys
from emu.explain.keys import Key
from emu.spec.notes import default_of, values_of
from emu.starter.data import REASONS

_WIDTH = 96
_ON_ONE_LINE = ("capture", "verify", "compare")
"""The sections whose entries are short."""
_CHOICES = ("kind", "pattern")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.%/\[\]:-]*")


def starter_text(data: Mapping[str, Any], command: str) -> str:
    """The text of the file. `command`: the command that made it."""
    head = [
        f"# Made by: {command}",
        "#",
        "#     emu validate FILE           checks it after a change",
        "#     emu run FILE                runs it; --clock virtual: at once, without a lab",
        *(
            ["#     emu compare FILE            runs the variants below"]
            if "compare" in data
            else []
        ),
        "#     emu explain KEY --spec FILE what a key means, and its value here",
        "",
    ]
    return "\n".join([*head, *_mapping(data, keys.root(), "")]) + "\n"


def _mapping(data: Mapping[str, Any], around: Key, indent: str) -> Iterator[str]:
    children, choice = _children(around, data)
    for name, value in data.items():
        key = children[name]
        if not indent:
            yield ""
        yield from _comment(choice if choice and name in _CHOICES else key, indent)
        yield from _entry(key, name, value, indent)


def _entry(key: Key, name: str, value: Any, indent: str) -> Iterator[str]:
    if name in _ON_ONE_LINE and not indent:
        yield f"{name}:"
        entries = value.items() if isinstance(value, Mapping) else ((None, v) for v in value)
        for inner, own in entries:
            yield from _wrapped(REASONS.get((name, inner or ""), ""), "  ")
            yield f"  {inner}: {_flow(own)}" if inner else f"  - {_flow(own)}"
    elif isinstance(value, Mapping):
        yield f"{indent}{name}:"
        yield from _mapping(value, key, f"{indent}  ")
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield f"{indent}{name}:"
        for entry in value:
            lines = list(_mapping(entry, key, f"{indent}    "))
            first = next(i for i, line in enumerate(lines) if not line.lstrip().startswith("#"))
            lines[first] = f"{indent}  - {lines[first].lstrip()}"
            yield from lines
    else:
        yield f"{indent}{name}: {_flow(value)}"


def _children(around: Key, data: Mapping[str, Any]) -> tuple[dict[str, Key], Key | None]:
    """The key's path in the schema, with the pattern or kind that determines the keys."""
    chosen = next((data[key] for key in _CHOICES if key in data), None)
    choice = next((c for c in around.children if c.chooses and c.path[-1] == chosen), None)
    return {child.path[-1]: child for child in (choice or around).children}, choice


def _comment(key: Key, indent: str) -> Iterator[str]:
    values, default = values_of(key.node), default_of(key.node)
    enum = f" Values: {values}." if "enum" in key.node else ""
    text = f"{key.meaning}{enum}" + (f" Default: {default}." if default else "")
    yield from _wrapped(f"{text} {REASONS.get(key.path, '')}", indent)


def _wrapped(text: str, indent: str) -> Iterator[str]:
    """The text as comment lines."""
    room = _WIDTH - len(indent)
    for line in textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False):
        yield f"{indent}# {line}"


def _flow(value: Any) -> str:
    """The value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(own)}" for key, own in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = str(value)
    return text if _PLAIN.fullmatch(text) and not {*text} & {*"[]"} else f'"{text}"'
