"""A check of a JSON document against a TypedDict: these keys, with values of these types."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict


def misfits(value: Any, kind: Any, at: str = "document") -> list[str]:
    """The places whose value has another type; empty if the document matches."""
    if is_typeddict(kind):
        return _misfits_of_typed_dict(value, kind, at)
    if isinstance(kind, UnionType):
        found = [misfits(value, one, at) for one in get_args(kind)]
        return [] if [] in found else [where for one in found for where in one]
    if get_origin(kind) is list and isinstance(value, list):
        (each,) = get_args(kind)
        return [w for n, item in enumerate(value) for w in misfits(item, each, f"{at}[{n}]")]
    if get_origin(kind) is dict and isinstance(value, dict):
        _, each = get_args(kind)
        return [w for key, item in value.items() for w in misfits(item, each, f"{at}.{key}")]
    plain = NoneType if kind is None else get_origin(kind) or kind
    return [] if type(value) is plain else [f"{at}: {value!r} is no {kind}"]


def _misfits_of_typed_dict(value: Any, kind: Any, at: str) -> list[str]:
    hints = get_type_hints(kind)
    marked = get_type_hints(kind, include_extras=True)
    required = {key for key, hint in marked.items() if get_origin(hint) is not NotRequired}
    if not isinstance(value, dict) or not required <= value.keys() <= hints.keys():
        return [f"{at}: has not exactly the keys {', '.join(hints)}"]
    return [w for key, one in value.items() for w in misfits(one, hints[key], f"{at}.{key}")]
