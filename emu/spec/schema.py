"""The JSON schema of spec files, for editors: completion, and what every key means."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaSerializer, core_schema

from emu.spec.scenario import Spec


@cache
def schema() -> dict[str, Any]:
    """The schema. A file without `name` is called after itself, so `name` is not required."""
    document = Spec.model_json_schema(schema_generator=_AsWritten)
    document["required"].remove("name")
    return {"$schema": _AsWritten.schema_dialect, **document}


def schema_text() -> str:
    """As `emu schema` prints it and `topologies/emu.schema.json` keeps it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


class _AsWritten(GenerateJsonSchema):
    """Describes what people write: `default: 96KB`, and no key that is `null`."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        document = self.generate_inner(schema["schema"])
        default = schema.get("default")
        if default in (None, (), {}) or isinstance(default, BaseModel):
            return document
        written = SchemaSerializer(schema["schema"]).to_python(default, mode="json")
        return {**document, "default": written}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False
