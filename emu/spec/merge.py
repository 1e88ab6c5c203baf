"""Inheritance: what is said for all, then for a role, then for one node; and variants.

The nearer word wins, key by key: `nodes: {leaf1: {pfc: {xoff: 50KB}}}` changes
leaf1's xoff and leaves its xon as its role or all switches have it. So it is where keys
are names or numbers: what is said of a port or a queue adds to what a role or all
switches say of it, `ports: {spine1: {pfc: {xoff: 50KB}}}`. Anything
that is not a mapping (a number, a list, `off`) replaces as a whole, and so does a
mapping of another `kind`, as it has other keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from emu.spec.base import Model

M = TypeVar("M", bound=Model)


def inherit(base: M, nearer: Model) -> M:
    """`base` with the keys that were given in `nearer`; keys `base` does not know are left out."""
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
    """The same for a spec's mappings before they are understood: `base` with `changes`."""
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
