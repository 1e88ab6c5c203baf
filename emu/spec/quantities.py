"""The types of values in a spec: readable text in the file, integers in the program.

    rate: 100Gbit   int, bits/s          size: 96KB        int, bytes
    rate: 4x NDR    int, bits/s
    delay: 500ns    int, picoseconds     pmax: 20%, 1/256  float, 0..1
    length: 5m      int, picoseconds     from: h2-h8       tuple of host names

A size without a unit is in bytes. A rate or a time without a unit is an error, since its unit
would be a guess. The same types read the text of `to_json` without loss.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    Strict,
    WithJsonSchema,
    WrapSerializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from emu import units
from emu.ib_rates import parse_ib_rate, width_of, write_ib_rate
from emu.limits import MAX_HOSTS
from emu.spec.notes import note
from emu.spec.numbers import leading_zero

LARGEST_SIZE = 2**40
"""Bytes."""

_RATE_LIMITS = (1_000_000, 10_000_000_000_000)
_RANGE = re.compile(r"([A-Za-z_]+)([0-9]{1,9})-(?:([A-Za-z_]+))?([0-9]{1,9})")


def _number(value: object, parse: Callable[[str], int], example: str) -> int:
    if isinstance(value, str):
        return parse(value)
    if value == 0 and type(value) is int:
        return 0
    raise ValueError(f"{_shown(value)} has no unit; write it like {example}")


def _shown(value: object) -> str:
    return "an empty value" if value is None else str(value)


def _rate(value: object) -> int:
    named = parse_ib_rate(value) if isinstance(value, str) else None
    bps = _number(value, units.parse_rate, "100Gbit") if named is None else named
    slowest, fastest = _RATE_LIMITS
    if not slowest <= bps <= fastest:
        raise ValueError(
            f"{value!r} is out of the emulated range, "
            f"{units.write_rate(slowest)} to {units.write_rate(fastest)}"
        )
    return bps


def _write_rate(bps: int) -> str:
    """An InfiniBand rate's name, which has its width, or the rate in bits per second."""
    named = write_ib_rate(bps) if width_of(bps) != width_of(int(bps)) else None
    return named or units.write_rate(bps)


class InUnits(int):
    """A number that errors write in the unit of its key. A model has it as a plain number."""

    def write(self, number: int) -> str:
        """A number of this kind, its own limits too."""
        raise NotImplementedError


class _Time(InUnits):
    def write(self, number: int) -> str:
        return units.write_time(number)


class _Length(InUnits):
    def write(self, number: int) -> str:
        return units.write_length(number)


def _time(value: object) -> int:
    return _Time(_number(value, units.parse_time, "600ns or 55us"))


def _length(value: object) -> int:
    return _Length(_number(value, units.parse_length, "5m"))


def _size(value: object) -> int:
    try:
        size = value if type(value) is int else _number(value, units.parse_size, "96KB")
    except units.TooLarge:
        size = LARGEST_SIZE + 1
    if size > LARGEST_SIZE:
        raise ValueError(f"{value!r} is too large; the most is 1TiB, 2^40 bytes")
    if size < 0:
        raise ValueError(f"{value} is negative, and must be 0 or more; write it like 96KB")
    return size


@dataclass(frozen=True)
class SizeOrAlpha:
    """A threshold in bytes, or an alpha in 1024ths; the other is 0."""

    size_bytes: int = 0
    alpha_1024: int = 0

    def __str__(self) -> str:
        """The text in a spec."""
        return units.write_size(self.size_bytes) if self.size_bytes else f"alpha {self.alpha:g}"

    @property
    def alpha(self) -> float:
        return self.alpha_1024 / 1024


def _threshold(value: object) -> SizeOrAlpha:
    if isinstance(value, SizeOrAlpha):
        return value
    match = re.fullmatch(r"alpha ([0-9.]+)(?:/([1-9][0-9]{0,3}))?", str(value))
    if match is None and str(value).startswith("alpha"):
        raise ValueError(f"{value!r} is not understood; write it like alpha 1/8 or alpha 2")
    if match is None:
        size = _size(value)
        if not 0 < size < 2**32:
            raise ValueError(f"{value} is not a threshold; write it like 96KB or alpha 1/8")
        return SizeOrAlpha(size_bytes=size)
    try:
        alpha_1024 = round(float(match[1]) / int(match[2] or 1) * 1024)
    except ValueError:
        alpha_1024 = 0
    if not 1 <= alpha_1024 <= 256 * 1024:
        raise ValueError(f"{value} is out of the emulated range, alpha 1/1024 to alpha 256")
    return SizeOrAlpha(alpha_1024=alpha_1024)


def _fraction(value: object) -> float:
    """The value of `20%`, `1/256` or `0.2`."""
    if isinstance(value, float) or type(value) is int:
        if 1 < value <= 100:
            raise ValueError(f"{value:g} is more than 1 (did you mean '{value:g}%'?)")
        return float(value)
    match = re.fullmatch(r"([0-9.]+)\s*(%|/\s*[0-9]+)?", value) if isinstance(value, str) else None
    try:
        if match is None:
            raise ValueError
        number, rest = float(match[1]), match[2] or "/1"
        return number / (100 if rest == "%" else int(rest[1:]))
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f"{_shown(value)} is not understood; write it like 20%, 1/256 or 0.2"
        ) from None


def _names(value: object) -> Iterator[str]:
    """The host names in `h1`, `h2-h8`, `h1, h3-h5` or a list of these."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _names(item)
    elif isinstance(value, str):
        for item in value.split(","):
            yield from _range(item.strip())
    else:
        raise ValueError(f"{_shown(value)} names no host; write it like h1, h2-h8 or [h1, h3]")


def _range(text: str) -> Iterator[str]:
    match = _RANGE.fullmatch(text)
    if match is None or match[3] not in (None, match[1]):
        yield text
        return
    first, last = int(match[2]), int(match[4])
    if first > last:
        raise ValueError(f"{text!r} is an empty range: its last number is below its first")
    if last - first >= MAX_HOSTS:
        raise ValueError(f"{text!r} is more than {MAX_HOSTS} hosts, the most there can be")
    yield from (f"{match[1]}{number}" for number in range(first, last + 1))


def _hosts(value: object) -> tuple[str, ...]:
    names = tuple(_names(value))
    if not any(names):
        raise ValueError("names no host; write it like h1, h2-h8 or [h1, h3]")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"names host {name!r} more than once")
    return names


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _off(value: object) -> object:
    """None for `off`, which is text in YAML 1.2 and false in YAML 1.1; {} for `on`."""
    word = value.lower() if isinstance(value, str) else value
    if word is False or word in _NO:
        return None
    return {} if word is True or word in _YES else _not_none(value)


_YES, _NO = ("on", "yes", "true"), ("off", "no", "false")
"""The words for true and false in YAML 1.1; in YAML 1.2 they are text."""


def _auto(value: object) -> object:
    return None if value == "auto" else _not_none(value)


def _not_none(value: object) -> object:
    if value is None:
        raise ValueError("has no value")
    return value


def number_key(value: object) -> object:
    """The number that a mapping's key stands for; in JSON keys are text."""
    if isinstance(value, str) and re.fullmatch("0[0-9]{1,9}", value):
        raise ValueError(leading_zero(value))
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else value


def as_slowdown(value: Any) -> Any:
    """`auto`, or the slowdown factor. Raises ValueError for anything else."""
    if value == "auto" or (type(value) in (int, float) and 1 <= value <= 1_000_000):
        return value
    raise ValueError(f"{_shown(value)} is neither auto nor a number from 1 to 1000000")


def named_like(pattern: str, rule: str) -> AfterValidator:
    """Annotates a name that must match `pattern`. `rule` describes the pattern in errors."""

    def checked(name: str) -> str:
        if re.fullmatch(pattern, name) is None:
            raise ValueError(f"{name!r:.40} is not a valid name here; use {rule}")
        return name

    return AfterValidator(checked)


def _text_schema(unit: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": list(examples), **note(unit=unit)})


Integer = Annotated[int, Strict()]

Rate = Annotated[
    int,
    PlainValidator(_rate),  # pydantic would turn an IbRate into an int
    PlainSerializer(_write_rate),
    _text_schema("bits per second", "100Gbit", "25Gbit", "40Mbit", "4x NDR"),
]
"""Bits per second, more than 0; InfiniBand's rates also by name."""

Time = Annotated[
    int,
    BeforeValidator(_time),
    PlainSerializer(units.write_time),
    _text_schema("time", "600ns", "55us", "10ms"),
]
"""Picoseconds."""

Length = Annotated[
    int,
    BeforeValidator(_length),
    PlainSerializer(units.write_length),
    _text_schema("metres", "5m", "2km"),
]
"""A cable's length as its one-way delay in picoseconds."""

Size = Annotated[
    int,
    BeforeValidator(_size),
    Field(ge=0, le=LARGEST_SIZE),
    PlainSerializer(units.write_size),
    WithJsonSchema(
        {
            "type": ["string", "integer"],
            "examples": ["96KB", "64KiB", "2MB", 4096],
            **note(unit="bytes"),
        }
    ),
]
"""Bytes."""

Fraction = Annotated[
    float,
    BeforeValidator(_fraction),
    Field(ge=0, le=1),
    WithJsonSchema(
        {
            "type": ["string", "number"],
            "examples": ["20%", "1/256", 0.2],
            **note(unit="a share, 0 to 1"),
        }
    ),
]
"""0 to 1."""

Hosts = Annotated[
    tuple[str, ...],
    BeforeValidator(_hosts),
    PlainSerializer(lambda hosts: list(getattr(hosts, "written", hosts)), return_type=list[str]),
    WithJsonSchema(
        {
            "type": ["string", "array"],
            "items": {"type": "string"},
            "examples": ["h1", "h2-h8", ["h1", "h3-h5"], "all", "leaf2[1:]"],
        }
    ),
]
"""Host names with ranges expanded. Groups (see `groups`) are expanded with the topology."""

PortNames = Annotated[
    tuple[str, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema(
        {
            "type": ["string", "array"],
            "items": {"type": "string"},
            "examples": ["all", ["leaf1:h1", "leaf1:spine1"]],
        }
    ),
]
"""Port names, or `all` alone."""

Priority = Annotated[int, Strict(), Field(ge=0, le=7)]

PriorityKey = Annotated[int, BeforeValidator(number_key), Field(ge=0, le=7)]
"""A priority as a mapping's key, which is text in JSON."""

Threshold = Annotated[
    SizeOrAlpha,
    BeforeValidator(_threshold),
    PlainSerializer(str),
    WithJsonSchema(
        {
            "type": ["string", "integer"],
            "examples": ["96KB", "alpha 1/8", "alpha 1", 96_000],
            **note(unit="bytes, or alpha: times the free shared buffer"),
        }
    ),
]
"""Bytes of a buffer, or `alpha` times the free part of its shared pool."""

Slowdown = Annotated[
    Literal["auto"] | float,
    BeforeValidator(as_slowdown),
    WithJsonSchema({"type": ["string", "number"], "examples": ["auto", 1000]}),
]


class _OffSchema:
    """The schema of a mapping, or of the words that replace it."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(core), {"enum": [*_NO, *_YES, False, True]}]}


OFF = BeforeValidator(_off)
"""Annotates an optional mapping that can be switched `off`."""

OFF_SCHEMA = _OffSchema()

OFF_WRITTEN = WrapSerializer(lambda value, write: "off" if value is None else write(value))

AUTO = BeforeValidator(_auto)
"""Annotates an optional value that the emulator computes when it is `auto`."""

AUTO_WRITTEN = WrapSerializer(lambda value, write: "auto" if value is None else write(value))
