"""The JSON schema of summary.json, for programs that read it.

Its types are those of `emu.report.summary`, its descriptions the texts of `emu explain field`.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from emu.explain.fields import described
from emu.report import summary


def schema() -> dict[str, Any]:
    document = TypeAdapter(summary.Summary).json_schema()
    for name, section in {"Summary": document, **document["$defs"]}.items():
        for (field, _), meaning in described(summary)[name]:
            if meaning:
                section["properties"][field]["description"] = meaning
    document["properties"]["schema"]["const"] = summary.SUMMARY_SCHEMA
    return {"$schema": GenerateJsonSchema.schema_dialect, **document}


def schema_text() -> str:
    """The text of `emu schema summary`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
