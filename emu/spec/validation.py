"""A document -> a Spec, or every finding in it at once.

    document ──▶ Spec ──▶ contradictions ──▶ variants
                 keys       rules            the same stages

A document with errors in one stage still goes through the later ones without its invalid keys.
Findings that depend on invalid keys are not reported.
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
    """Makes the names of files absolute. They are relative to `folder`."""
    compare = data.get("compare")
    variants = compare.values() if isinstance(compare, dict) else ()
    for part in (data, *variants):
        for entry, key in _naming_files(part):
            entry[key] = str((folder / entry[key]).absolute())


def files_named(data: dict[str, Any]) -> list[Path]:
    """The files that a spec's data names, without those of variants."""
    return [Path(entry[key]) for entry, key in _naming_files(data)]


def _naming_files(part: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Each mapping of a spec's data that names a file, with the key that does."""
    yield from _naming_traces(part)
    yield from _naming_configurations(part)


def _naming_traces(part: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Each traffic entry of a spec's data that names a file, with the key that does."""
    traffic = part.get("traffic") if isinstance(part, dict) else None
    for entry in traffic if isinstance(traffic, list) else ():
        for key in ("file", "groups"):
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                yield entry, key


def _naming_configurations(part: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Each mapping in a spec that names a file of its control plane, with the key that does."""
    if not isinstance(part, dict):
        return
    yield from _naming(part, "recorded_routes")
    switches = part.get("switches")
    layers = [switches]
    for key in ("roles", "nodes"):
        named = switches.get(key) if isinstance(switches, dict) else None
        layers += named.values() if isinstance(named, dict) else ()
    for layer in layers:
        routing = layer.get("routing") if isinstance(layer, dict) else None
        bgp = routing.get("bgp") if isinstance(routing, dict) else None
        if isinstance(bgp, dict):
            yield from _naming(bgp, "frr_conf")


def _naming(mapping: dict[str, Any], key: str) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(mapping.get(key), str):
        yield mapping, key


def spec_of(document: Document) -> Spec:
    """The spec of a document. Raises SpecError with all findings, each at its place."""
    spec, findings = validated(document)
    if findings:
        raise SpecError(lines(findings, document.places))
    return spec


def validated(document: Document) -> tuple[Spec, list[Diagnostic]]:
    """The spec of a document, and the findings about it and its variants. Without findings the spec
    is complete."""
    findings = list(document.findings)
    doubtful = [finding.path for finding in findings if finding.path]
    spec, own = validated_alone(document.data, doubtful)
    findings += own
    findings += _variant_findings(document.data, doubtful, own)
    return spec, findings


def validated_alone(
    data: dict[str, Any], doubtful: Iterable[KeyPath]
) -> tuple[Spec, list[Diagnostic]]:
    """The spec of a mapping, and the findings about it, without those about its variants."""
    understood = understand(data)
    doubts = [*doubtful, *(path for finding in understood.findings for path in finding.about)]
    contradicting = map(understood.as_written, contradictions(understood.spec))
    findings = understood.findings + [f for f in contradicting if not _rests_on(f, doubts)]
    return understood.spec, findings


def _rests_on(finding: Diagnostic, doubts: Iterable[KeyPath]) -> bool:
    """Whether a finding is about a doubtful key, a key inside of it or a section around it."""
    return any(
        path[: len(doubt)] == doubt[: len(path)]
        for path in (finding.path, *finding.about)
        for doubt in doubts
    )


def _variant_findings(
    data: dict[str, Any], doubtful: Sequence[KeyPath], own: Sequence[Diagnostic]
) -> Iterator[Diagnostic]:
    """The findings about the variants that the spec itself does not have, with paths in
    `compare:`."""
    known = {(finding.path, finding.text) for finding in own}
    compare = data.get("compare")
    for name, changes in compare.items() if isinstance(compare, dict) else ():
        if not isinstance(changes, dict):
            continue
        if "compare" in changes:
            yield Diagnostic(("compare", name, "compare"), "a variant has no variants of its own")
        _, findings = validated_alone(variant(data, changes), doubtful)
        for finding in findings:
            inherited = not has(changes, finding.path)
            if (finding.path, finding.text) in known or (inherited and finding.idle_if_inherited):
                continue
            yield replace(finding, path=("compare", name, *finding.path))
