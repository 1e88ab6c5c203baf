"""A file -> a Spec: reads the text and validates it (`emu.spec.validation`)."""

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
    """Reads a spec file. Each of `settings` is a `KEY=VALUE`, as after `--set`.

    Raises SpecError with all findings, UsageError when the file cannot be read.
    """
    return spec_of(document_of(path, settings))


def document_of(path: Path, settings: Sequence[str] = ()) -> Document:
    """A spec file's data with the place of each key, not yet validated. Raises the same errors."""
    return _document(_text_of(path), str(path), settings)


def spec_from_text(text: bytes, *, source: str, settings: Sequence[str] = ()) -> Spec:
    """A spec from text. `source` is its name in findings. Raises the same errors."""
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
        raise UsageError(f"{str(path)!r} is not the name of a file ({error})") from None


def name_of(source: str) -> str:
    """The name of a spec without the key `name`, made from the name of its file."""
    stem = Path(source).name.removesuffix(".yml").removesuffix(".yaml").removesuffix(".emu")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_")[:64] or "unnamed"
