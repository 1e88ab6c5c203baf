"""Where a value of one switch or host was given: for itself, for its role, or for all."""

from __future__ import annotations

from emu.spec.base import Model
from emu.spec.finding import KeyPath
from emu.spec.scenario import Spec


def for_switch(spec: Spec, name: str, *keys: str) -> KeyPath:
    """`("switches", "roles", "leaf", "pfc", "xon")` when leaves have an xon of their own."""
    role = spec.topology.build().switch[name].role
    return _nearest("switches", spec.switches, (("nodes", name), ("roles", role)), keys)


def for_host(spec: Spec, name: str, *keys: str) -> KeyPath:
    return _nearest("hosts", spec.hosts, (("nodes", name),), keys)


def _nearest(
    section: str, model: Model, owners: tuple[tuple[str, str], ...], keys: tuple[str, ...]
) -> KeyPath:
    written = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for owner in owners:
        if has(written, (*owner, *keys)):
            return (section, *owner, *keys)
    return (section, *keys)


def has(mapping: object, path: KeyPath) -> bool:
    """Whether a key was written, in mappings within mappings."""
    for key in path:
        if not isinstance(mapping, dict) or key not in mapping:
            return False
        mapping = mapping[key]
    return True
