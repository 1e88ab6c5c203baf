"""The fast writer of indented JSON gives the same text as the standard library."""

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
def test_indented_json_equals_the_standard_librarys(value: Any) -> None:
    """Texts may hold brackets and commas, and containers may be empty."""
    assert indented_json(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_tuples_are_written_as_lists() -> None:
    """Recordings contain tuples."""
    value = {"ports": ({"a": 1}, ()), "of": {"x": (1, 2)}}
    assert indented_json(value) == json.dumps(value, indent=2)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": {"b": float("nan")}}])
def test_numbers_without_a_json_form_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented_json(value)
