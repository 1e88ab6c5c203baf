"""Specs made by programs: from keys, or from another spec with some keys changed.

They are validated like a file. Their findings have no line or column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from emu.errors import SpecError
from emu.spec import settings as command_line
from emu.spec.diagnostic import Place, Places, lines
from emu.spec.document import Document
from emu.spec.scenario import Spec
from emu.spec.validation import name_files_in_full, spec_of, validated


def spec_from_mapping(data: dict[str, Any], *, source: str, folder: Path) -> Spec:
    """A spec of these keys. `folder` has the files that traffic entries name. Raises SpecError."""
    name_files_in_full(data, folder)
    return spec_of(Document(data, Places(Place(0, 0, source))))


def with_settings(spec: Spec, settings: Sequence[str]) -> Spec:
    """A spec with settings as after `--set`. Raises SpecError with all findings."""
    document = Document(spec.to_mapping(), Places(Place(0, 0, spec.name)))
    for setting in settings:
        command_line.apply(document, setting)
    return spec_of(document)


def with_values(spec: Spec, values: Mapping[str, Any], *, source: str) -> Spec:
    """A spec with these values at keys with dots (`switches.ecn.kmin`). `source` is their place in
    findings. Raises SpecError with all findings."""
    data = spec.to_mapping()
    for key, value in values.items():
        command_line.put(data, key, value)
    return spec_of(Document(data, Places(Place(0, 0, source))))


def changed(spec: Spec, changes: Mapping[str, Any], *, source: str) -> Spec:
    """The spec with other keys from a program. `source` is their place in findings.

    Raises SpecError. Its findings do not name the keys, which the user has not written.
    """
    document = Document({**spec.to_mapping(), **changes}, Places(Place(0, 0, source)))
    made, findings = validated(document)
    if findings:
        shown = [replace(f, path=()) if {*f.path[:1]} & changes.keys() else f for f in findings]
        raise SpecError(lines(shown, document.places))
    return made
