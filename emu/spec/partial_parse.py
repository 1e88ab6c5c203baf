"""As much of a spec as can be understood, so that one mistake does not hide the next.

What pydantic refuses is left out and the rest tried again, until it is a Spec;
the smallest topology stands in for one that cannot be read. The result is good
for finding contradictions in what was understood, and for nothing else.
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
    """For each list, by its path in the copy: the numbers its entries had before."""

    def written(self, path: KeyPath) -> KeyPath:
        """Where a key of the copy was in the data: numbers of entries as they were written."""
        original: KeyPath = ()
        for depth, step in enumerate(path):
            entries = self.entries.get(path[:depth])
            if entries is not None and isinstance(step, int) and step < len(entries):
                step = entries[step]
            original += (step,)
        return original

    def has(self, path: KeyPath) -> bool:
        """Whether there is such a key in the copy."""
        inside: Any = self.data
        for step in path:
            try:
                inside = inside[step]
            except (KeyError, IndexError, TypeError):
                return False
        return True


@dataclass(frozen=True)
class Understood:
    """A spec, and what was left out of it and why."""

    spec: Spec
    findings: list[Diagnostic]
    kept: Kept

    def as_written(self, finding: Diagnostic) -> Diagnostic:
        """A finding in `spec` as one in the data it was understood from."""
        about = tuple(self.kept.written(path) for path in finding.about)
        return replace(finding, path=self.kept.written(finding.path), about=about)


def understand(data: dict[str, Any]) -> Understood:
    """Always makes a spec; it is all of `data` if there are no findings."""
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
            # Grows every time: what it names is in `kept`, where nothing refused is left.
            refused |= _to_leave_out(reworded(error), kept)


def _to_leave_out(findings: Iterable[Diagnostic], kept: Kept) -> set[KeyPath]:
    """The keys found wrong; what a key is missing from, unless that is the spec itself."""
    wrong = {f.path if kept.has(f.path) else f.path[:-1] for f in findings if not _absent(f, kept)}
    return {kept.written(path) for path in wrong}


def _absent(finding: Diagnostic, kept: Kept) -> bool:
    """Whether it is a whole section that is missing."""
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
