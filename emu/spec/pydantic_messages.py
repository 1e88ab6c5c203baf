"""Pydantic's errors, reworded for operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from emu.spec.diagnostic import Diagnostic, KeyPath, did_you_mean, nearest
from emu.spec.quantities import InUnits
from emu.spec.schema import schema


def _input(error: ErrorDetails) -> str:
    """The value in the spec, shortened."""
    value = error["input"]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, InUnits):
        return value.write(value)
    return f"{value!r:.60}"


def _is_not(what: str) -> Callable[[ErrorDetails], str]:
    return lambda error: f"must be {what}, not {_input(error)}"


def _limit(words: str, key: str) -> Callable[[ErrorDetails], str]:
    def say(error: ErrorDetails) -> str:
        limit, value = error["ctx"][key], error["input"]
        written = value.write(limit) if isinstance(value, InUnits) and limit else limit
        return f"{_input(error)} is out of range; {words} {written}"

    return say


def _choice(error: ErrorDetails) -> str:
    expected = error["ctx"]["expected"]
    known = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
    hint = did_you_mean(str(error["input"]), known)
    return f"{_input(error)} is not known here{hint or '; choose ' + ' or '.join(known)}"


def _kind(error: ErrorDetails) -> str:
    known = [tag.strip("' ") for tag in error["ctx"]["expected_tags"].split(",")]
    hint = did_you_mean(error["ctx"]["tag"], known)
    return f"{error['ctx']['tag']!r} is not known here{hint or '; choose ' + ' or '.join(known)}"


_WORDS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda error: "is missing",
    "literal_error": _choice,
    "union_tag_invalid": _kind,
    "union_tag_not_found": lambda error: "is missing",
    "value_error": lambda error: str(error["ctx"]["error"]),
    "greater_than": _limit("it must be more than", "gt"),
    "greater_than_equal": _limit("the least is", "ge"),
    "less_than": _limit("it must be less than", "lt"),
    "less_than_equal": _limit("the most is", "le"),
    "too_short": lambda error: f"needs at least {error['ctx']['min_length']}",
    "too_long": lambda error: f"may have {error['ctx']['max_length']} at most",
    "string_type": _is_not("text (in quotes if it looks like a number)"),
    "string_unicode": _is_not("text"),
    "int_type": _is_not("a whole number"),
    "int_parsing": _is_not("a whole number"),
    "float_type": _is_not("a number"),
    "bool_type": _is_not("true or false"),
    "bool_parsing": _is_not("true or false"),
    "finite_number": _is_not("a finite number"),
    "tuple_type": _is_not("a list"),
    "dict_type": _is_not("a mapping of keys to values"),
    "model_type": _is_not("a mapping of keys to values"),
    "model_attributes_type": _is_not("a mapping of keys to values"),
}


_TAGS = {"topology": 1, "traffic": 2}
"""The place of a union's tag in pydantic's paths: `topology.leaf-spine.spines`,
`traffic.0.incast.size`."""


_MOST_HINTS = 100
"""The most unknown keys with a hint at a known key. The search for it takes time, and a file with
so many unknown keys is probably not a spec."""


def reworded(
    error: ValidationError, of: Callable[[], dict[str, Any]] = schema
) -> Iterator[Diagnostic]:
    """Each of pydantic's errors as a finding. `of`: the JSON schema of the model, a spec's unless
    given."""
    unknown = 0
    for details in error.errors(include_url=False):
        unknown += details["type"] == "extra_forbidden"
        if unknown > _MOST_HINTS and details["type"] == "extra_forbidden":
            yield Diagnostic(_path(details), "unknown key")
        elif not _only_follows(details):
            yield _finding(details, of)


def _only_follows(error: ErrorDetails) -> bool:
    """Whether the list is only too short because entries of it were refused."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def _finding(error: ErrorDetails, of: Callable[[], dict[str, Any]]) -> Diagnostic:
    path = _path(error)
    if error["type"] == "extra_forbidden":
        return _unknown_key(path, known_keys(error["loc"][:-1], of()))
    if error["input"] is None and error["type"] != "missing":
        return Diagnostic(path, "has no value", about=(path,))
    words = _WORDS.get(error["type"])
    return Diagnostic(path, words(error) if words else error["msg"], about=(path,))


def _unknown_key(path: KeyPath, known: list[str]) -> Diagnostic:
    """The finding for an unknown key. It makes the key that was probably meant doubtful."""
    near = nearest(str(path[-1]), known)
    if near:
        return Diagnostic(
            path, f"unknown key (did you mean {near!r}?)", about=((*path[:-1], near),)
        )
    return Diagnostic(path, f"unknown key; known here are {', '.join(known)}")


def _path(error: ErrorDetails) -> KeyPath:
    """The path of an error's key, without the tag of a union and `[key]`, which pydantic adds."""
    path = tuple(step for step in error["loc"] if step != "[key]")
    tag = _TAGS.get(str(path[0])) if path else None
    if tag is not None:
        path = path[:tag] + path[tag + 1 :]
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return (*path, error["ctx"]["discriminator"].strip("'"))
    return path


def known_keys(loc: KeyPath, root: dict[str, Any]) -> list[str]:
    """The keys of the mapping at a pydantic location, from the JSON schema."""
    node = root
    for step in loc:
        node = _resolved(_inside(_resolved(node, root), step), root)
    return list(node.get("properties", ()))


def _inside(node: dict[str, Any], step: str | int) -> dict[str, Any]:
    """One step into a schema: a union's tag, a list's entry, or a mapping's key."""
    if "discriminator" in node:
        return {"$ref": node["discriminator"]["mapping"][step]}
    if isinstance(step, int):
        found = node["items"]
    else:
        found = node.get("properties", {}).get(step) or node["additionalProperties"]
    assert isinstance(found, dict)
    return found


def _resolved(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """The schema behind a reference; for `a mapping or off`, that of the mapping."""
    if "anyOf" in node:
        node = node["anyOf"][0]
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return node
