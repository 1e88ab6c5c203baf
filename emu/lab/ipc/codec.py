"""Encodes messages as lines of JSON, and decodes them.

    @message
    class Ready:
        pid: int                  {"type": "Ready", "pid": 42}

    @message
    class CountFrames(Query[FrameCount]):      a query names the type of its answer

A message is a frozen dataclass. Its fields may be numbers, texts, tuples, dictionaries (also with
integer keys), optional values, named tuples and other dataclasses; the content of `Json` is not
checked. `from_line` checks every other field, so that a handler may rely on its types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from emu.errors import RemoteProtocolError

Json = dict[str, Any]
"""A JSON object whose content is not checked, for example a fault of a spec."""

Message = object
"""An instance of a class that `message` has registered."""

A = TypeVar("A")
C = TypeVar("C")
_Decode = Callable[[Any], Any]
"""Checks and converts a JSON value. Raises `_WrongType`."""

_KINDS: dict[str, type] = {}
_TYPE_NAMES = {int: "an integer", float: "a number", str: "a text", bool: "true or false"}


class Query(Generic[A]):
    """A message that another process answers with an `A`."""

    @classmethod
    def answer_type(cls) -> type[A]:
        """The `A` in `class CountFrames(Query[A])`."""
        (answer,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
        return cast(type[A], answer)


class _WrongType(ValueError):
    def __init__(self, problem: str) -> None:
        super().__init__()
        self._problem = problem
        self.path: list[str] = []
        """The place in the message, innermost part first."""

    @classmethod
    def expected(cls, what: str, value: object) -> _WrongType:
        return cls(f"expected {what}, received {_short(value)}")

    def __str__(self) -> str:
        place = "".join(reversed(self.path)).removeprefix(".")
        return f"{place}: {self._problem}"


@dataclass_transform(frozen_default=True)
def message(cls: type[C]) -> type[C]:
    """Makes a class a frozen dataclass and registers it under its name."""
    made = dataclass(frozen=True)(cls)
    assert _KINDS.get(cls.__name__, made).__module__ == cls.__module__, cls.__name__
    _KINDS[cls.__name__] = made
    return made


def to_line(message: Message) -> bytes:
    """A message as one line of JSON, newline included."""
    own = {"type": type(message).__name__, **_fields_of(message)}
    return json.dumps(own, separators=(",", ":"), default=_fields_of).encode() + b"\n"


def _fields_of(value: Any) -> Json:
    """The fields of a dataclass. The json module calls this for every object in a message."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} cannot be part of a message")
    return {field.name: getattr(value, field.name) for field in fields(value)}


def from_line(line: bytes) -> Message:
    """The message in a line of JSON. Raises RemoteProtocolError if the line is not a message."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise RemoteProtocolError(f"{_short(line)} is not a message: it is not JSON") from None
    kind = values.pop("type", None) if isinstance(values, dict) else None
    if not isinstance(kind, str):
        raise RemoteProtocolError(f"{_short(line)} is not a message: it has no type")
    if kind not in _KINDS:
        raise RemoteProtocolError(f"unknown message {kind}; {_ONE_VERSION}")
    try:
        return _decoder(_KINDS[kind])(values)
    except _WrongType as error:
        raise RemoteProtocolError(f"malformed message {kind}: {error}; {_ONE_VERSION}") from None


_ONE_VERSION = "do both processes run the same version of emu?"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


# ---- one decoder for each type ---------------------------------------------


@cache
def _decoder(hint: Any) -> _Decode:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return _anything
    if hint == Json:
        return _json
    if origin in (Union, UnionType):
        return _optional(hint)
    if origin is Literal:
        return _one_of(arguments)
    if origin in (dict, Mapping):
        return _dictionary(*arguments)
    if origin is Sequence or (origin is tuple and arguments[1:] == (...,)):
        return _sequence(arguments[0])
    if origin is tuple:
        return _fixed(arguments, tuple)
    if is_dataclass(hint):
        return _dataclass(cast(type, hint))
    if hasattr(hint, "_fields"):  # a named tuple
        return _fixed(tuple(get_type_hints(hint).values()), lambda items: hint(*items))
    return _scalar(hint)


def _anything(value: Any) -> Any:
    return value


def _json(value: Any) -> Any:
    if not isinstance(value, dict):
        raise _WrongType.expected("an object", value)
    return value


def _scalar(kind: type) -> _Decode:
    name = _TYPE_NAMES[kind]
    allowed = {kind, int} if kind is float else {kind}  # 1.0 may be written as 1

    def decode(value: Any) -> Any:
        if type(value) not in allowed:
            raise _WrongType.expected(name, value)
        return value

    return decode


def _one_of(values: tuple[Any, ...]) -> _Decode:
    def decode(value: Any) -> Any:
        if value not in values:
            raise _WrongType.expected(f"one of {', '.join(map(str, values))}", value)
        return value

    return decode


def _optional(hint: Any) -> _Decode:
    (some,) = (_decoder(one) for one in get_args(hint) if one is not NoneType)
    return lambda value: None if value is None else some(value)


def _sequence(hint: Any) -> _Decode:
    decode = _decoder(hint)

    def decode_all(values: Any) -> tuple[Any, ...]:
        if not isinstance(values, list):
            raise _WrongType.expected("a list", values)
        return tuple(_at(f"[{index}]", decode, value) for index, value in enumerate(values))

    return decode_all


def _fixed(hints: tuple[Any, ...], build: Callable[[Any], Any]) -> _Decode:
    decoders = [_decoder(hint) for hint in hints]

    def decode(values: Any) -> Any:
        if not isinstance(values, list) or len(values) != len(decoders):
            raise _WrongType.expected(f"a list of {len(decoders)}", values)
        pairs = enumerate(zip(decoders, values, strict=True))
        return build(tuple(_at(f"[{index}]", own, value) for index, (own, value) in pairs))

    return decode


def _dictionary(key: type, hint: Any) -> _Decode:
    """JSON's keys are texts; integer keys are converted back to integers."""
    decode = _decoder(hint)

    def decode_all(values: Any) -> dict[Any, Any]:
        if not isinstance(values, dict):
            raise _WrongType.expected("an object", values)
        return {_key(key, own): _at(f".{own}", decode, value) for own, value in values.items()}

    return decode_all


def _key(kind: type, key: str) -> Any:
    try:
        return kind(key)
    except ValueError:
        raise _WrongType.expected(f"{_TYPE_NAMES[kind]} as a key", key) from None


def _dataclass(cls: type) -> _Decode:
    hints = get_type_hints(cls)
    decoders = {field.name: _decoder(hints[field.name]) for field in fields(cls)}
    needed = {
        field.name
        for field in fields(cls)
        if field.default is MISSING and field.default_factory is MISSING
    }

    def decode(values: Any) -> Any:
        if not isinstance(values, dict):
            raise _WrongType.expected("an object", values)
        for name in sorted(needed - values.keys()):
            raise _at_field(name, _WrongType("missing"))
        for name in sorted(values.keys() - decoders.keys()):
            raise _at_field(name, _WrongType("unknown field"))
        return cls(**{name: _at(f".{name}", decoders[name], own) for name, own in values.items()})

    return decode


def _at_field(name: str, error: _WrongType) -> _WrongType:
    error.path.append(f".{name}")
    return error


def _at(place: str, decode: _Decode, value: Any) -> Any:
    """Decodes a value. Adds the place to an error."""
    try:
        return decode(value)
    except _WrongType as error:
        error.path.append(place)
        raise
