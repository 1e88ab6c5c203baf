"""The JSON schemas of results, that of summary.json held against runs by another project's
validator, and the arrays of series.npz."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import emu
from emu.cli.main import cli
from emu.cli.schema import DOCUMENTS as CHOICES
from emu.explain.fields import arrays, fields
from emu.explain.results_schema import DOCUMENTS, schema

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
SPECS = ["incast", "storage", "all-reduce", "pulled-spine", "pfc-deadlock", "background"]


@pytest.fixture(scope="module", params=SPECS)
def run(request: pytest.FixtureRequest) -> emu.Run:
    (file,) = TOPOLOGIES.rglob(f"{request.param}.emu.yml")
    return emu.run(file, clock="virtual")


def test_summaries_follow_the_schema(run: emu.Run) -> None:
    summary = json.loads((run.folder / "summary.json").read_text())
    jsonschema.validate(summary, schema("summary"))


@pytest.mark.parametrize(
    ("field", "value"), [("seed", "one"), ("flows", None), ("schema", "emu.summary/2")]
)
def test_another_document_does_not_follow_it(field: str, value: object) -> None:
    run = emu.run(TOPOLOGIES / "pair.emu.yml", clock="virtual")
    summary = json.loads((run.folder / "summary.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**summary, field: value}, schema("summary"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_field_of_the_schema_is_described(document: str) -> None:
    missing = [name for name, node in _properties(schema(document)) if "description" not in node]
    assert missing == []
    assert [field.name for field in fields() if not field.meaning] == []


def test_arrays_of_a_run_are_those_that_are_described(run: emu.Run) -> None:
    with np.load(run.folder / "series.npz") as found:
        described = {array.name: array.meaning for array in arrays()}
        assert set(found) <= set(described)
        for name in found:
            shape = described[name].partition(":")[0]
            assert found[name].ndim == shape.count(",") + (not shape.endswith(",)")), name


def test_the_command_prints_all_schemas() -> None:
    assert set(CHOICES) == {"spec", *DOCUMENTS}
    for document in CHOICES:
        printed = CliRunner().invoke(cli, ["schema", document])
        assert printed.exit_code == 0
        key = "topology" if document == "spec" else "schema"
        assert key in json.loads(printed.stdout)["properties"]


def _properties(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for section in (node, *node["$defs"].values()):
        yield from section.get("properties", {}).items()
