"""Inheritance: settings of all nodes, then of a role, then of one node; and variants.

The more specific setting wins, key by key: `nodes: {leaf1: {pfc: {xoff: 50KB}}}` changes leaf1's
xoff, and its xon stays that of its role or of all switches. The same holds for mappings whose keys
are names or numbers: a node's settings of a port or a queue,
`ports: {spine1: {pfc: {xoff: 50KB}}}`, add to those of its role or of all switches. A value that is
not a mapping (a number, a list, `off`) is replaced as a whole. So is a mapping of another `kind`,
because it has other keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from emu.spec.base import Model

M = TypeVar("M", bound=Model)


def inherit(base: M, nearer: Model) -> M:
    """`base` with the keys that are given in `nearer`, except keys that `base` does not have."""
    given = nearer.model_fields_set & set(type(base).model_fields)
    changes = {key: _inherited(getattr(base, key), getattr(nearer, key)) for key in given}
    return base.model_copy(update=changes)


def _inherited(base: object, nearer: object) -> object:
    if isinstance(base, Model) and isinstance(nearer, Model):
        return inherit(base, nearer)
    if isinstance(base, dict) and isinstance(nearer, dict):
        changes = {key: _inherited(base.get(key), value) for key, value in nearer.items()}
        return {**base, **changes}
    return nearer


def overlay(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes`, for a spec's data that is not yet validated."""
    merged = dict(base)
    for key, value in changes.items():
        under = merged.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping) and _same_kind(under, value):
            value = overlay(under, value)
        merged[key] = value
    return merged


def _same_kind(base: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    kind = base.get("kind")
    return bool(changes.get("kind", kind) == kind)
