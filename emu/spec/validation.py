"""A document -> a Spec, or every finding in it at once.

    document ──▶ Spec ──▶ contradictions ──▶ variants
                 keys       rules            the same again

A document that breaks in one stage still goes through the later ones, with what was
understood of it: keys that could not be are left out, and nothing is reported
that rests on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from emu.errors import SpecError
from emu.spec.diagnostic import Diagnostic, KeyPath, lines
from emu.spec.document import Document
from emu.spec.partial_parse import understand
from emu.spec.rules import contradictions
from emu.spec.rules.provenance import has
from emu.spec.scenario import Spec, variant


def name_files_in_full(data: dict[str, Any], folder: Path) -> None:
    """Files that traffic entries name are seen from the spec's folder."""
    compare = data.get("compare")
    variants = compare.values() if isinstance(compare, dict) else ()
    for part in (data, *variants):
        traffic = part.get("traffic") if isinstance(part, dict) else None
        for entry in traffic if isinstance(traffic, list) else ():
            for key in ("file", "groups"):
                if isinstance(entry, dict) and isinstance(entry.get(key), str):
                    entry[key] = str((folder / entry[key]).absolute())


def spec_of(document: Document) -> Spec:
    """Raises SpecError with all findings, each at its place."""
    spec, findings = judged(document)
    if findings:
        raise SpecError(lines(findings, document.places))
    return spec


def judged(document: Document) -> tuple[Spec, list[Diagnostic]]:
    """A spec, and what is wrong with it and with its variants; it is all of the document if there
    are no findings."""
    findings = list(document.findings)
    doubtful = [finding.path for finding in findings if finding.path]
    spec, own = judged_alone(document.data, doubtful)
    findings += own
    findings += _variant_findings(document.data, doubtful, own)
    return spec, findings


def judged_alone(
    data: dict[str, Any], doubtful: Iterable[KeyPath]
) -> tuple[Spec, list[Diagnostic]]:
    """The same of a spec's data, its variants apart."""
    understood = understand(data)
    doubts = [*doubtful, *(path for finding in understood.findings for path in finding.about)]
    contradicting = map(understood.as_written, contradictions(understood.spec))
    findings = understood.findings + [f for f in contradicting if not _rests_on(f, doubts)]
    return understood.spec, findings


def _rests_on(finding: Diagnostic, doubts: Iterable[KeyPath]) -> bool:
    """Whether a finding is about a doubtful key, one inside it or one around it."""
    return any(
        path[: len(doubt)] == doubt[: len(path)]
        for path in (finding.path, *finding.about)
        for doubt in doubts
    )


def _variant_findings(
    data: dict[str, Any], doubtful: Sequence[KeyPath], own: Sequence[Diagnostic]
) -> Iterator[Diagnostic]:
    """What is wrong with the variants and not with the spec itself, placed in `compare:`."""
    known = {(finding.path, finding.text) for finding in own}
    compare = data.get("compare")
    for name, changes in compare.items() if isinstance(compare, dict) else ():
        if not isinstance(changes, dict):
            continue
        if "compare" in changes:
            yield Diagnostic(("compare", name, "compare"), "a variant has no variants of its own")
        _, findings = judged_alone(variant(data, changes), doubtful)
        for finding in findings:
            inherited = not has(changes, finding.path)
            if (finding.path, finding.text) in known or (inherited and finding.idle_if_inherited):
                continue
            yield replace(finding, path=("compare", name, *finding.path))
