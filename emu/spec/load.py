"""A file -> a Spec: its text is read, then goes through all stages (`emu.spec.validation`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from emu.errors import SpecError, UsageError
from emu.regular import open_regular
from emu.spec import settings as command_line
from emu.spec.diagnostic import Diagnostic, lines
from emu.spec.document import MAX_BYTES, Document, Unreadable, read
from emu.spec.scenario import Spec
from emu.spec.validation import name_files_in_full, spec_of


def load_spec(path: Path, settings: Sequence[str] = ()) -> Spec:
    """Reads a spec file. `settings` are `KEY=VALUE` each, as after `--set`.

    Raises SpecError with all findings, UsageError when the file cannot be read.
    """
    return spec_of(document_of(path, settings))


def document_of(path: Path, settings: Sequence[str] = ()) -> Document:
    """The same before it is understood, with the place of each key. Raises the same errors."""
    return _document(_text_of(path), str(path), settings)


def spec_from_text(text: bytes, *, source: str, settings: Sequence[str] = ()) -> Spec:
    """The same for text that is already here; `source` is the name it goes by in findings."""
    return spec_of(_document(text, source, settings))


def _document(text: bytes, source: str, settings: Sequence[str]) -> Document:
    try:
        document = read(text, source)
    except Unreadable as unreadable:
        raise SpecError([f"{unreadable.finding.place}: {unreadable}"]) from None
    if not isinstance(document.data, dict):
        raise SpecError(lines([_NO_MAPPING], document.places))
    document.data.setdefault("name", name_of(source))
    for setting in settings:
        command_line.apply(document, setting)
    name_files_in_full(document.data, Path(source).parent)
    return document


_NO_MAPPING = Diagnostic(
    (), "is not a spec: it must be a mapping of keys (`topology: ...`) to values"
)


def _text_of(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is no name of a file ({error})") from None


def name_of(source: str) -> str:
    """What a spec without a name is called: as its file."""
    stem = Path(source).name.removesuffix(".yml").removesuffix(".yaml").removesuffix(".emu")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_")[:64] or "unnamed"
