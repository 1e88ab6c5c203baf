"""What a key of a spec has beside its meaning: its unit, why its default is what it is, its source.

    kmin: Size = Field(default=..., description="Depth up to which ...",
                       json_schema_extra=note(why="...", source=references.HPCC_NS3))

This is the only place of such facts. The JSON schema has them, so do the hints of editors
(`markdownDescription`), `emu explain` and docs/reference. A note of a whole section
(`model_config`) holds for each of its keys that has no reason of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.config import JsonDict

UNIT, WHY, SOURCE = "x-unit", "x-default-reason", "x-source"


def note(*, unit: str = "", why: str = "", source: str = "") -> JsonDict:
    """`why`: the reason for the default. `source`: a public document (`emu.spec.references`)."""
    told = {UNIT: unit, WHY: why, SOURCE: source}
    return {key: text for key, text in told.items() if text}


def facts(node: Mapping[str, Any]) -> Iterator[str]:
    """What the schema of a key says of it, a paragraph each: meaning, unit, default, source."""
    yield node["description"]
    if UNIT in node:
        yield f"Unit: {node[UNIT]}."
    if "default" in node:
        reason = f": {node[WHY]}" if WHY in node else ""
        yield f"Default: {written(node['default'])}{reason}."
    if SOURCE in node:
        yield f"Source: {node[SOURCE]}."


def written(value: Any) -> str:
    """A value as a spec has it on one line; long lists are cut short."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (
        text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(', ')[0]}, ...{text[-1]}"
    )


_LONGEST = 80
