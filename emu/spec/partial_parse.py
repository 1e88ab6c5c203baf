"""Parses the valid part of a spec, so that one mistake does not hide the next.

The keys that pydantic refuses are left out and the rest is parsed again, until it is a Spec. The
smallest topology replaces one that is invalid. The result serves only to find contradictions in
the valid part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.pydantic_messages import reworded
from emu.spec.scenario import Spec

_STAND_IN = {
    "name": "unnamed",
    "topology": {"kind": "leaf-spine", "spines": 1, "leaves": 1, "hosts_per_leaf": 1},
}


@dataclass
class Kept:
    """A copy of a spec's data without some keys."""

    data: dict[str, Any]
    entries: dict[KeyPath, list[int]] = field(default_factory=dict)
    """Path of a list in the copy -> the index of each of its entries in the original list."""

    def written(self, path: KeyPath) -> KeyPath:
        """The path in the original data of a key of the copy."""
        original: KeyPath = ()
        for depth, step in enumerate(path):
            entries = self.entries.get(path[:depth])
            if entries is not None and isinstance(step, int) and step < len(entries):
                step = entries[step]
            original += (step,)
        return original

    def has(self, path: KeyPath) -> bool:
        """Whether the copy has the key."""
        inside: Any = self.data
        for step in path:
            try:
                inside = inside[step]
            except (KeyError, IndexError, TypeError):
                return False
        return True


@dataclass(frozen=True)
class Understood:
    """The valid part of a spec, and the findings about the rest."""

    spec: Spec
    findings: list[Diagnostic]
    kept: Kept

    def as_written(self, finding: Diagnostic) -> Diagnostic:
        """A finding about `spec`, with the paths of the original data."""
        about = tuple(self.kept.written(path) for path in finding.about)
        return replace(finding, path=self.kept.written(finding.path), about=about)


def understand(data: dict[str, Any]) -> Understood:
    """Parses `data`. Without findings the spec is complete."""
    kept = Kept(data)
    try:
        return Understood(Spec.model_validate(data), [], kept)
    except ValidationError as error:
        findings = list(reworded(error))
    refused = _to_leave_out(findings, kept)
    while True:
        kept = _keep(data, refused)
        try:
            return Understood(Spec.model_validate(_STAND_IN | kept.data), findings, kept)
        except ValidationError as error:
            # Grows each time: the error names keys in `kept`, which has no refused keys.
            refused |= _to_leave_out(reworded(error), kept)


def _to_leave_out(findings: Iterable[Diagnostic], kept: Kept) -> set[KeyPath]:
    """The invalid keys, and the mappings that lack a key, except for the whole spec."""
    wrong = {f.path if kept.has(f.path) else f.path[:-1] for f in findings if not _absent(f, kept)}
    return {kept.written(path) for path in wrong}


def _absent(finding: Diagnostic, kept: Kept) -> bool:
    """Whether the finding is about a missing section."""
    return len(finding.path) == 1 and not kept.has(finding.path)


def _keep(data: dict[str, Any], refused: set[KeyPath]) -> Kept:
    kept = Kept({})
    if () in refused:
        return kept

    def copy(value: Any, path: KeyPath, was: KeyPath) -> Any:
        if isinstance(value, dict):
            keys = [key for key in value if (*was, key) not in refused]
            return {key: copy(value[key], (*path, key), (*was, key)) for key in keys}
        if isinstance(value, list):
            numbers = [i for i in range(len(value)) if (*was, i) not in refused]
            kept.entries[path] = numbers
            return [copy(value[i], (*path, n), (*was, i)) for n, i in enumerate(numbers)]
        return value

    kept.data = copy(data, (), ())
    return kept
