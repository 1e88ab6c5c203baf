"""The JSON schemas of summary.json, bench-report.json and decide.json, which programs read.

Their types are those of `emu.report.summary`, `emu.bmwg.document` and `emu.decisions.document`, and
their descriptions the texts below the fields, which `emu explain field` prints for summary.json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from emu.bmwg import document as bench_report
from emu.decisions import document as decision
from emu.explain.fields import described
from emu.report import summary


@dataclass(frozen=True)
class Document:
    """A kind of document, and where its types are."""

    module: ModuleType
    kind: str
    """Name of the type of the whole document."""
    version: str
    """The value of its field `schema`."""


DOCUMENTS = {
    "summary": Document(summary, "Summary", summary.SUMMARY_SCHEMA),
    "bench-report": Document(bench_report, "BenchReport", bench_report.BENCH_SCHEMA),
    "decision": Document(decision, "Decision", decision.DECISION_SCHEMA),
}
"""By the name that `emu schema` takes."""


def schema(name: str) -> dict[str, Any]:
    """The schema of a document. Raises KeyError for an unknown name."""
    own = DOCUMENTS[name]
    document = TypeAdapter(getattr(own.module, own.kind)).json_schema()
    for kind, section in {own.kind: document, **document["$defs"]}.items():
        for (field, _), meaning in described(own.module)[kind]:
            if meaning:
                section["properties"][field]["description"] = meaning
    document["properties"]["schema"]["const"] = own.version
    return {"$schema": GenerateJsonSchema.schema_dialect, **document}


def schema_text(name: str) -> str:
    """The text of `emu schema NAME`."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"
