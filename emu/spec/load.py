"""A file -> a Spec, or every finding in it at once.

    text ──▶ document ──▶ settings ──▶ Spec ──▶ contradictions ──▶ variants
              syntax       --set       keys       rules            the same again

A file that breaks in one stage still goes through the later ones, with what was
understood of it: keys that could not be are left out, and nothing is reported
that rests on them. What programs put together goes through the same stages: a spec with
settings or other keys, one made of keys alone, and a fault that is set in a lab that is up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from emu.errors import SpecError, UsageError
from emu.spec import settings as command_line
from emu.spec.document import MAX_BYTES, Document, Unreadable, read
from emu.spec.fault import Fault
from emu.spec.finding import Finding, KeyPath, Place, Places, dotted, lines
from emu.spec.rules import contradictions
from emu.spec.rules.given import has
from emu.spec.scenario import Spec, variant
from emu.spec.understand import understand


def load_spec(path: Path, settings: Sequence[str] = ()) -> Spec:
    """Reads a spec file. `settings` are `KEY=VALUE` each, as after `--set`.

    Raises SpecError with all findings, UsageError when the file cannot be read.
    """
    return spec_from_text(_text_of(path), source=str(path), settings=settings)


def spec_from_text(text: bytes, *, source: str, settings: Sequence[str] = ()) -> Spec:
    """The same for text that is already here; `source` is the name it goes by in findings."""
    try:
        document = read(text, source)
    except Unreadable as unreadable:
        raise SpecError([f"{unreadable.finding.place}: {unreadable}"]) from None
    if not isinstance(document.data, dict):
        raise SpecError(lines([_NO_MAPPING], document.places))
    document.data.setdefault("name", _name_of(source))
    for setting in settings:
        command_line.apply(document, setting)
    _name_files_in_full(document.data, Path(source).parent)
    return _spec(document)


def with_settings(spec: Spec, settings: Sequence[str]) -> Spec:
    """A spec with settings as after `--set`; SpecError with all that they make wrong."""
    document = Document(spec.to_mapping(), Places(Place(0, 0, spec.name)))
    for setting in settings:
        command_line.apply(document, setting)
    return _spec(document)


def changed(spec: Spec, changes: Mapping[str, Any], *, source: str) -> Spec:
    """The spec with other keys, which a program made up; `source` is the name they go by.

    Raises SpecError. Findings about these keys do not name them, as nobody wrote them.
    """
    data = {**spec.to_mapping(), **changes}
    document = Document(data, Places(Place(0, 0, source)))
    findings = _all_findings(document)
    if findings:
        shown = [replace(f, path=()) if {*f.path[:1]} & changes.keys() else f for f in findings]
        raise SpecError(lines(shown, document.places))
    return Spec.model_validate(data)


def fault_from_text(text: str, spec: Spec) -> Fault:
    """A fault that begins now in a fabric of this spec, written as in a spec's `faults:`.

    Raises UsageError when the text is no YAML, SpecError with all findings otherwise: after
    the text, as its own keys.
    """
    try:
        document = read(text.encode(errors="surrogateescape"), text)
    except Unreadable:
        raise UsageError(
            f"{text!r} is no fault; write it like: loss: {{cable: leaf1:h1, every: 256}}"
        ) from None
    own: KeyPath = ("faults", 0)
    findings = [replace(finding, path=(*own, *finding.path)) for finding in document.findings]
    if isinstance(document.data, dict) and "at" in document.data:
        begins = "is for a spec; in a lab that is up a fault begins when it is set, so leave it out"
        findings.append(Finding((*own, "at"), begins))
    data = spec.to_mapping() | {"faults": [document.data]}
    findings += _findings(data, [finding.path for finding in findings])
    if findings:
        raise SpecError([f"{text!r}: {_within(own, finding)}" for finding in findings])
    return Spec.model_validate(data).faults[0]


def _within(part: KeyPath, finding: Finding) -> str:
    """A finding for whom this part of a spec is all they wrote."""
    inside = finding.path[: len(part)] == part
    path = dotted(finding.path[len(part) :] if inside else finding.path)
    return f"{path}: {finding.text}" if path else finding.text


def spec_from_mapping(data: dict[str, Any], *, source: str, folder: Path) -> Spec:
    """The same for keys that a program has put together, whose findings have no line or column.

    Files that traffic entries name lie in `folder`.
    """
    _name_files_in_full(data, folder)
    return _spec(Document(data, Places(Place(0, 0, source))))


def _name_files_in_full(data: dict[str, Any], folder: Path) -> None:
    """Files that traffic entries name are seen from the spec's folder."""
    compare = data.get("compare")
    variants = compare.values() if isinstance(compare, dict) else ()
    for part in (data, *variants):
        traffic = part.get("traffic") if isinstance(part, dict) else None
        for entry in traffic if isinstance(traffic, list) else ():
            for key in ("file", "groups"):
                if isinstance(entry, dict) and isinstance(entry.get(key), str):
                    entry[key] = str((folder / entry[key]).absolute())


_NO_MAPPING = Finding((), "is not a spec: it must be a mapping of keys (`topology: ...`) to values")


def _text_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is no name of a file ({error})") from None


def _name_of(source: str) -> str:
    stem = Path(source).name.removesuffix(".yml").removesuffix(".yaml").removesuffix(".emu")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_")[:64] or "unnamed"


def _spec(document: Document) -> Spec:
    findings = _all_findings(document)
    if findings:
        raise SpecError(lines(findings, document.places))
    return Spec.model_validate(document.data)


def _all_findings(document: Document) -> list[Finding]:
    findings = list(document.findings)
    doubtful = [finding.path for finding in findings if finding.path]
    own = _findings(document.data, doubtful)
    findings += own
    findings += _variant_findings(document.data, doubtful, own)
    return findings


def _findings(data: dict[str, Any], doubtful: Iterable[KeyPath]) -> list[Finding]:
    """What is wrong with a spec's data, its variants apart."""
    understood = understand(data)
    doubts = [*doubtful, *(path for finding in understood.findings for path in finding.about)]
    contradicting = map(understood.as_written, contradictions(understood.spec))
    return understood.findings + [f for f in contradicting if not _rests_on(f, doubts)]


def _rests_on(finding: Finding, doubts: Iterable[KeyPath]) -> bool:
    """Whether a finding is about a doubtful key, one inside it or one around it."""
    return any(
        path[: len(doubt)] == doubt[: len(path)]
        for path in (finding.path, *finding.about)
        for doubt in doubts
    )


def _variant_findings(
    data: dict[str, Any], doubtful: Sequence[KeyPath], own: Sequence[Finding]
) -> Iterator[Finding]:
    """What is wrong with the variants and not with the spec itself, placed in `compare:`."""
    known = {(finding.path, finding.text) for finding in own}
    compare = data.get("compare")
    for name, changes in compare.items() if isinstance(compare, dict) else ():
        if not isinstance(changes, dict):
            continue
        if "compare" in changes:
            yield Finding(("compare", name, "compare"), "a variant has no variants of its own")
        for finding in _findings(variant(data, changes), doubtful):
            inherited = not has(changes, finding.path)
            if (finding.path, finding.text) in known or (inherited and finding.idle_if_inherited):
                continue
            yield replace(finding, path=("compare", name, *finding.path))
