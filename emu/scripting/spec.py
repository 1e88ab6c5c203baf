"""Specs for scripts: from a file, or from keys in Python."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from emu.errors import UsageError
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
        own = {"name": "spec", **plain(deepcopy(keys))}
        checked = spec_from_mapping(own, source="emu.Spec", folder=Path.cwd())
        super().__init__(**checked.to_mapping())

    def __eq__(self, other: object) -> bool:
        """Whether the keys are the same, also those of a spec from a file."""
        return isinstance(other, scenario.Spec) and self.to_mapping() == other.to_mapping()

    __hash__ = scenario.Spec.__hash__


def given(spec: scenario.Spec | str | Path, settings: Settings | None) -> scenario.Spec:
    """The spec, or the one in a file, with these settings. Raises SpecError, UsageError."""
    if not isinstance(spec, scenario.Spec | str | Path):
        raise UsageError(
            f"spec: {type(spec).__name__} is neither the name of a spec file nor an emu.Spec; keys "
            "make a spec by emu.Spec(**keys)"
        )
    if not isinstance(settings, Mapping | None):
        raise UsageError('set: is no mapping; write it like {"switches.ecn.kmin": "50KB"}')
    read = spec if isinstance(spec, scenario.Spec) else load_spec(Path(spec))
    return with_values(read, plain(settings), source="set") if settings else read


def plain(value: Any) -> Any:
    """The value with Python's numbers instead of NumPy's."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
