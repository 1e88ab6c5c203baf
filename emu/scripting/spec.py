"""Specs for scripts: from a file, or from keys in Python."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from emu.spec import scenario
from emu.spec.from_code import spec_from_mapping, with_values
from emu.spec.load import load_spec

Settings = Mapping[str, Any]
"""Keys with dots, as after `--set`, and their values: `{"switches.ecn.kmin": "50KB"}`."""


class Spec(scenario.Spec):
    """A spec whose keys are those of a spec file (docs/reference/spec.md), without a file:

        spec = emu.Spec(
            topology={"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 4},
            traffic=[
                {"name": "two", "pattern": "incast", "from": "h2-h3", "to": "h1", "size": "1MB"}
            ],
        )

    File names in it are relative to the working folder. Raises SpecError with all mistakes.
    """

    def __init__(self, **keys: Any) -> None:
        own = {"name": "spec", **deepcopy(keys)}
        checked = spec_from_mapping(own, source="emu.Spec", folder=Path.cwd())
        super().__init__(**checked.to_mapping())


def given(spec: scenario.Spec | str | Path, settings: Settings | None) -> scenario.Spec:
    """The spec, or the one in a file, with these settings. Raises SpecError, UsageError."""
    read = spec if isinstance(spec, scenario.Spec) else load_spec(Path(spec))
    return with_values(read, settings, source="set") if settings else read
