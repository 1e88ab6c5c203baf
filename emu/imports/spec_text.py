"""A mapping of a spec as YAML text: sections in blocks, short values on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.%/#-]*(?: [A-Za-z0-9/.]+)?")
_NOT_PLAIN = re.compile(r"(?i)true|false|null|0[xob][0-9a-f_]+|[0-9]+[0-9_.e+-]*")


def spec_text(data: Mapping[str, Any], comments: Sequence[str]) -> str:
    """The text of a spec that begins with comments."""
    lines = [f"# {comment}".rstrip() for comment in comments]
    for key, value in data.items():
        lines += ["", *_entry(key, value, "")]
    return "\n".join(lines) + "\n"


def _entry(key: Any, value: Any, indent: str) -> Iterator[str]:
    """A key with its value, on one line if that is short or has no parts."""
    line = f"{indent}{_key(key)}: {_flow(value)}"
    is_short = len(line) <= _WIDTH and not (isinstance(value, list) and _has_mappings(value))
    if is_short and (indent or not isinstance(value, Mapping)):
        yield line
    elif isinstance(value, Mapping):
        yield f"{indent}{_key(key)}:"
        for inner, own in value.items():
            yield from _entry(inner, own, f"{indent}  ")
    elif isinstance(value, list) and _has_mappings(value):
        yield f"{indent}{_key(key)}:"
        yield from (f"{indent}  - {_flow(own)}" for own in value)
    else:
        yield line


def _has_mappings(value: list[Any]) -> bool:
    return any(isinstance(own, Mapping) for own in value)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_flow(own)}" for key, own in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return _quoted(str(value))


def _key(key: Any) -> str:
    return str(key) if isinstance(key, int) else _quoted(str(key))


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and not _NOT_PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
