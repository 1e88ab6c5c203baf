"""Messages as lines of JSON: every type survives the round trip, and
errors name malformed fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from emu.daemon.messages import BorrowedNic, GetStatus, Status
from emu.errors import RemoteProtocolError
from emu.lab.ipc import codec, jobs, queries, routing, setup
from emu.lab.ipc.codec import Json, Query, from_line, message, to_line
from emu.lab.ipc.messages import Ready
from emu.subnet.subnet import Resweep, Subnet


@dataclass(frozen=True)
class Inner:
    name: str
    pairs: tuple[tuple[str, int], ...] = ()


@message
class Everything:
    """A message with a field of each type."""

    number: int
    rate: float
    yes: bool
    maybe: str | None
    inner: Inner
    several: tuple[Inner, ...]
    by_number: dict[int, tuple[int, ...]]
    loose: Json
    choice: Literal["one", "two"] = "one"


WHOLE = Everything(
    1, 2.5, True, None, Inner("a", (("b", 3),)), (Inner("c"),), {4: (5,)}, {"x": [6]}
)


def test_a_message_is_one_line_of_json() -> None:
    """The line holds the type and the fields."""
    assert to_line(Ready(42)) == b'{"type":"Ready","pid":42}\n'
    assert from_line(b'{"type":"Ready","pid":42}') == Ready(42)


def test_every_type_of_field_survives_the_round_trip() -> None:
    assert from_line(to_line(WHOLE)) == WHOLE


def test_every_field_of_every_message_can_be_decoded() -> None:
    """`from_line` knows the type of every field."""
    kinds = list(codec._KINDS.values())
    assert {jobs.RunTraffic, queries.Tap, routing.Tables, setup.SetUpNics} <= set(kinds)
    for kind in kinds:
        codec._decoder(kind)


def test_a_subnet_survives_the_round_trip() -> None:
    """A subnet has named tuples and integer keys."""
    later = Resweep(5, {"leaf1": {2: 1}}, {"h1": {"h2": 1}}, ("a note",))
    nic = BorrowedNic(3, Subnet({"h1": 1}, {"leaf1": {1: 2}}, "updn", 0.5, (later,)))
    assert from_line(to_line(nic)) == nic


def test_an_integer_is_accepted_for_a_float() -> None:
    assert from_line(to_line(WHOLE).replace(b"2.5", b"2")).rate == 2  # type: ignore[attr-defined]


def test_a_query_knows_the_type_of_its_answer() -> None:
    assert GetStatus().answer_type() is Status
    assert issubclass(GetStatus, Query)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"hello", "b'hello' is not a message: it is not JSON"),
        (b"\xff", "is not a message: it is not JSON"),
        (b"[" * 100_000, "is not a message: it is not JSON"),
        (b"[]", "b'[]' is not a message: it has no type"),
        (b'{"type": 7}', "is not a message: it has no type"),
        (
            b'{"type": "Ask", "what": "status"}',
            "unknown message Ask; do both processes run the same",
        ),
        (b'{"type": "Ready"}', "malformed message Ready: pid: missing; do both"),
        (b'{"type": "Ready", "pid": "x"}', "Ready: pid: expected an integer, received 'x'"),
        (b'{"type": "Ready", "pid": true}', "Ready: pid: expected an integer, received True"),
        (
            b'{"type": "Ready", "pid": 1, "tid": 2}',
            "Ready: tid: unknown field",
        ),
    ],
)
def test_a_malformed_line_is_refused_with_the_reason(line: bytes, says: str) -> None:
    with pytest.raises(RemoteProtocolError) as raised:
        from_line(line)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        (b'["b",3]', b'["b","3"]', "inner.pairs[0][1]: expected an integer, received '3'"),
        (b'["b",3]', b'["b"]', "inner.pairs[0]: expected a list of 2, received ['b']"),
        (b'{"4":[5]}', b'{"four":[5]}', "by_number: expected an integer as a key, received 'four'"),
        (b'{"4":[5]}', b'{"4":5}', "by_number.4: expected a list, received 5"),
        (b'{"x":[6]}', b"[6]", "loose: expected an object, received [6]"),
        (b'"maybe":null', b'"maybe":1', "maybe: expected a text, received 1"),
        (b'"one"', b'"three"', "choice: expected one of one, two, received 'three'"),
        (b'[{"name":"c","pairs":[]}]', b"[{}]", "several[0].name: missing"),
    ],
)
def test_an_error_names_the_place_of_a_wrong_value(right: bytes, wrong: bytes, says: str) -> None:
    line = to_line(WHOLE)
    assert right in line
    with pytest.raises(RemoteProtocolError) as raised:
        from_line(line.replace(right, wrong))
    assert says in str(raised.value)


def test_only_plain_values_can_be_sent() -> None:
    with pytest.raises(TypeError, match="object cannot be part of a message"):
        to_line(Everything(1, 2, True, None, Inner("a"), (), {}, {"x": object()}))
