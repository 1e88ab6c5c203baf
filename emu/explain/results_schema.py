"""The JSON schemas of the documents that programs read.

Their types are in a module of each document, and their descriptions are the texts below the fields,
which `emu explain field` prints for summary.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from emu.bmwg import document as bench_report
from emu.convergence import document as convergence
from emu.decisions import document as decision
from emu.explain.fields import Field, described, fields_of
from emu.perf import document as perf
from emu.report import summary
from emu.sensitivities import document as sensitivity
from emu.sweeps import document as sweep
from emu.tuning import document as tune


@dataclass(frozen=True)
class Document:
    """A kind of document, and where its types are."""

    module: ModuleType
    kind: str
    """Name of the type of the whole document."""
    version: str
    """The value of its field `schema`."""
    title: str
    """Its file, or the command that prints it."""
    origin: str
    """Where it comes from, in a sentence of Markdown."""

    def fields(self) -> Iterator[Field]:
        """All fields, in the order of the document."""
        return fields_of(self.module, self.kind)


_WRITTEN = "`emu {0}` writes it, and prints it with `--json`."

DOCUMENTS = {
    "summary": Document(
        summary, "Summary", summary.SUMMARY_SCHEMA, "summary.json", _WRITTEN.format("run")
    ),
    "comparison": Document(
        summary,
        "Comparison",
        summary.COMPARISON_SCHEMA,
        "comparison.json",
        _WRITTEN.format("compare"),
    ),
    "bench-report": Document(
        bench_report,
        "BenchReport",
        bench_report.BENCH_SCHEMA,
        "bench-report.json",
        _WRITTEN.format("bench-report"),
    ),
    "perf": Document(
        perf, "Perf", perf.PERF_SCHEMA, "emu perf --json", "`emu perf --json` prints it."
    ),
    "sweep": Document(sweep, "Sweep", sweep.SWEEP_SCHEMA, "sweep.json", _WRITTEN.format("sweep")),
    "tune": Document(tune, "Tune", tune.TUNE_SCHEMA, "tune.json", _WRITTEN.format("tune")),
    "sensitivity": Document(
        sensitivity,
        "Sensitivity",
        sensitivity.SENSITIVITY_SCHEMA,
        "sensitivity.json",
        _WRITTEN.format("sensitivity"),
    ),
    "convergence": Document(
        convergence,
        "Convergence",
        convergence.CONVERGENCE_SCHEMA,
        "convergence.json",
        _WRITTEN.format("convergence"),
    ),
    "decision": Document(
        decision, "Decision", decision.DECISION_SCHEMA, "decide.json", _WRITTEN.format("decide")
    ),
}
"""By the name that `emu schema` takes."""


def schema(name: str) -> dict[str, Any]:
    """The schema of a document. Raises KeyError for an unknown name."""
    own = DOCUMENTS[name]
    document = TypeAdapter(getattr(own.module, own.kind)).json_schema()
    known = described(own.module)
    for kind, section in {own.kind: document, **document["$defs"]}.items():
        for (field, _), meaning in known[kind]:
            if meaning:
                section["properties"][field]["description"] = meaning
    document["properties"]["schema"]["const"] = own.version
    return {"$schema": GenerateJsonSchema.schema_dialect, **document}


def schema_text(name: str) -> str:
    """The text of `emu schema NAME`."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"
