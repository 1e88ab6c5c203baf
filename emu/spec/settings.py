"""Settings from the command line: `--set switches.ecn.kmin=50KB` changes one key of a spec.

The value is YAML. An entry of a list is named by its number, counted from 0, or by its name:
`traffic.0.size` or `traffic.incast.size`.
"""

from __future__ import annotations

from typing import Any

from emu.errors import SpecError
from emu.spec.diagnostic import KeyPath, Place, did_you_mean
from emu.spec.document import Document, Unreadable, read


def apply(document: Document, setting: str) -> None:
    """Changes the document. An error in the setting becomes a finding of the document."""
    key, equals, text = setting.partition("=")
    place = Place(0, 0, f"--set {key}")
    try:
        if not equals or not is_key(key):
            raise Unreadable("is not a setting; write it like --set switches.ecn.kmin=50KB", place)
        value = value_of(text, place.source)
    except Unreadable as error:
        document.findings.append(error.finding)
    else:
        change(document, key, value, place.source)


def is_key(text: str) -> bool:
    """Whether the text can name a key: words with dots between them."""
    return all(part.isprintable() and part for part in text.split("."))


def change(document: Document, key: str, value: Any, source: str) -> None:
    """Sets a key of the document to a value. `source` is its place in findings. An entry that does
    not exist becomes a finding of the document."""
    place = Place(0, 0, source)
    try:
        path = _put(document.data, key.split("."), value, place)
    except Unreadable as error:
        document.findings.append(error.finding)
    else:
        document.places.replace(path, place)


def put(data: dict[str, Any], key: str, value: Any) -> None:
    """Sets a key of a spec's data, named as after `--set`, to a value. Raises SpecError."""
    place = Place(0, 0, key)
    try:
        _put(data, key.split("."), value, place)
    except Unreadable as error:
        raise SpecError([f"{error.finding.place}: {error}"]) from None


def value_of(text: str, source: str) -> Any:
    """The value of a text, which is YAML. `source` is its place in findings. Raises Unreadable."""
    place = Place(0, 0, source)
    if not text.strip():
        raise Unreadable("has no value", place)
    try:
        given = read(text.encode(errors="surrogateescape"), source)
    except Unreadable as error:
        raise Unreadable(f"its value {error}", place) from None
    for finding in given.findings:
        raise Unreadable(f"its value: {finding.text}", place)
    return given.data


def _put(data: dict[str, Any], keys: list[str], value: Any, place: Place) -> KeyPath:
    """Sets a value at a key, and adds the mappings around it that are missing.

    Returns the path of the outermost new mapping, or of the key.
    """
    inside: Any = data
    path: KeyPath = ()
    for key in keys[:-1]:
        step = _step(inside, key, place)
        path = (*path, step)
        if not isinstance(_get(inside, step), dict | list):
            inside[step] = _nested(keys[len(path) :], value)
            return path
        inside = inside[step]
    step = _step(inside, keys[-1], place)
    inside[step] = value
    return (*path, step)


def _nested(keys: list[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _get(inside: Any, step: str | int) -> Any:
    return inside.get(step) if isinstance(inside, dict) else inside[step]


def _step(inside: dict[str, Any] | list[Any], key: str, place: Place) -> str | int:
    """The key itself, or the number of the list's entry that it names."""
    if isinstance(inside, dict):
        return key
    if key.isascii() and key.isdigit() and len(key) < 9 and int(key) < len(inside):
        return int(key)
    names = [entry.get("name") for entry in inside if isinstance(entry, dict)]
    known = [name for name in names if isinstance(name, str)]
    for index, entry in enumerate(inside):
        if isinstance(entry, dict) and entry.get("name") == key:
            return index
    raise Unreadable(f"there is no entry {key!r}{did_you_mean(key, known)}", place)
