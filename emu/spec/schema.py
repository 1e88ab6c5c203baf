"""The JSON schema of spec files, with which editors complete and explain keys."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaSerializer, core_schema

from emu.spec.notes import SOURCE, WHY, facts
from emu.spec.scenario import Spec


@cache
def schema() -> dict[str, Any]:
    """The schema. `name` is not required, since its default is the name of the file."""
    document = Spec.model_json_schema(schema_generator=_AsWritten)
    document["required"].remove("name")
    for section in (document, *document["$defs"].values()):
        _complete(section)
    return {"$schema": _AsWritten.schema_dialect, **document}


def schema_text() -> str:
    """The text of `emu schema` and of `topologies/emu.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _complete(section: dict[str, Any]) -> None:
    """Adds the section's reason to keys with a default, and the text for editors to all keys."""
    shared = {key: section.pop(key) for key in (WHY, SOURCE) if key in section}
    for node in section.get("properties", {}).values():
        if "default" in node and WHY not in node:
            node |= shared
        node["markdownDescription"] = "\n\n".join(facts(node))


class _AsWritten(GenerateJsonSchema):
    """Generates a schema of the text in specs: `default: 96KB`, and no key may be `null`."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        document = self.generate_inner(schema["schema"])
        default = schema.get("default")
        if default in ((), {}) or isinstance(default, BaseModel):
            return document
        inner = schema["schema"]
        if default is not None:
            written = SchemaSerializer(inner).to_python(default, mode="json")
        else:
            written = _word_for_none(inner)
        return document if written is None else {**document, "default": written}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _word_for_none(schema: core_schema.CoreSchema) -> Any:
    """`off` or `auto` for a key that allows the word (see `quantities`)."""
    serializer: Any = schema.get("serialization") or {}
    write = serializer.get("function") if serializer.get("type") == "function-wrap" else None
    return write(None, None) if write else None
