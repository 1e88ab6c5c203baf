"""Values of a section with all defaults, and mappings whose keys have dots.

{"ecn": {"kmin": "20KB"}}    ->    {"ecn.kmin": "20KB"}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emu.spec.base import Model


def written(model: Model) -> dict[str, Any]:
    """All values of a section, as in a spec, with the defaults."""
    return model.model_dump(mode="json", by_alias=True)


def flat(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with dots and their values. `above` stands before each key."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
