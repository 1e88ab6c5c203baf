"""The quick writer of indented JSON and the standard library's write the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.report.json_text import indented_json

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars.filter(lambda value: value not in (float("inf"), -float("inf"))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values)
def test_indented_json_is_the_standard_library_s(value: Any) -> None:
    """Byte for byte, with brackets and commas inside of texts, and empty containers."""
    assert indented_json(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_tuples_and_subclasses_are_containers_too() -> None:
    """As a recording has them."""
    value = {"ports": ({"a": 1}, ()), "of": {"x": (1, 2)}}
    assert indented_json(value) == json.dumps(value, indent=2)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": {"b": float("nan")}}])
def test_a_number_json_does_not_know_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented_json(value)
