"""Notes of a key besides its meaning: its unit, the reason for its default, and the source.

    kmin: Size = Field(default=..., description="Depth up to which ...",
                       json_schema_extra=note(why="...", source=references.HPCC_NS3))

The notes are written only here. The JSON schema, the hints of editors (`markdownDescription`),
`emu explain` and docs/reference take them from here. A note of a whole section (`model_config`)
holds for each of its keys without a reason of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.config import JsonDict

UNIT, WHY, SOURCE = "x-unit", "x-default-reason", "x-source"


def note(*, unit: str = "", why: str = "", source: str = "") -> JsonDict:
    """`why`: the reason for the default. `source`: a public document (`emu.spec.references`)."""
    notes = {UNIT: unit, WHY: why, SOURCE: source}
    return {key: text for key, text in notes.items() if text}


def facts(node: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs about a key from its schema: meaning, unit, values, default, source."""
    yield node["description"]
    if UNIT in node:
        yield f"Unit: {node[UNIT]}."
    if values := values_of(node):
        yield f"Values: {values}."
    if default := default_of(node):
        yield f"Default: {default}."
    if SOURCE in node:
        yield f"Source: {node[SOURCE]}."


def values_of(node: Mapping[str, Any]) -> str:
    """The allowed values: words, a range, or examples. Empty if the type is enough."""
    if "enum" in node:
        return ", ".join(map(written, node["enum"]))
    bounds = [f"{word} {node[key]}" for key, word in _BOUNDS.items() if key in node]
    if bounds and node.get("type") in ("integer", "number"):
        return " and ".join(bounds)
    examples = ", ".join(map(written, node.get("examples", ())))
    return examples and f"e.g. {examples}"


def default_of(node: Mapping[str, Any]) -> str:
    """The default with its reason; empty without a default."""
    if "default" not in node:
        return ""
    return written(node["default"]) + (f": {node[WHY]}" if WHY in node else "")


def written(value: Any) -> str:
    """A value as a spec writes it on one line. Long lists are shortened."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (
        text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(', ')[0]}, ...{text[-1]}"
    )


_BOUNDS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "up to",
    "exclusiveMaximum": "below",
}
_LONGEST = 80
