"""Any input gives either a Spec or a SpecError, and never another exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from emu.errors import SpecError
from emu.spec.model import spec_from_json, spec_from_text
from emu.spec.schema import schema

INCAST = Path(__file__).parents[2] / "topologies" / "incast.emu.yml"
DEMO: dict[str, Any] = YAML(typ="safe").load(INCAST)

KEYS = sorted({key for model in schema()["$defs"].values() for key in model["properties"]})
WORDS = [
    "off",
    "on",
    "auto",
    "100Gbit",
    "96KB",
    "5m",
    "1e999s",
    "20%",
    "h1-h8",
    "h9",
    "leaf1:h1",
    "",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def load(text: bytes, *setting: str) -> None:
    """Load the text. A spec that results must be usable; an error must be printable."""
    try:
        spec = spec_from_text(text, source="any.emu.yml", settings=setting)
    except SpecError as error:
        str(error).encode()
        return
    assert spec_from_json(spec.to_json()) == spec
    assert list(spec.variants()) == list(spec.compare)
    spec.workload()


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes(text: bytes) -> None:
    """The file holds random bytes or random text."""
    load(text)


@given(st.text(alphabet="ab01:-[]{},&*!|>'\"%@`#? \n\t", max_size=60))
@settings(max_examples=300)
def test_any_yaml_punctuation(text: str) -> None:
    """The text consists of characters that have a meaning in YAML."""
    load(text.encode())


@given(st.dictionaries(st.sampled_from(sorted(schema()["properties"])), values, max_size=6))
@settings(max_examples=200)
def test_any_data(data: dict[str, Any]) -> None:
    """The keys of a spec have random values."""
    load(json.dumps(data).encode())


@given(st.data())
@settings(max_examples=300)
def test_a_good_spec_with_one_random_change(data: st.DataObject) -> None:
    """One key of a good spec is replaced, dropped or renamed."""
    spec = json.loads(json.dumps(DEMO))
    inside: Any = spec
    while True:
        key = data.draw(st.sampled_from(_keys(inside)))
        if not _keys(inside[key]) or data.draw(st.booleans()):
            break
        inside = inside[key]
    _change(inside, key, data)
    load(json.dumps(spec).encode())


READY = sorted(Path(INCAST).parent.glob("*.emu.yml"), key=lambda path: path.name)


@pytest.mark.parametrize("path", READY, ids=lambda path: path.name)
def test_a_ready_spec_without_a_section(path: Path) -> None:
    """Other sections may refer to the missing one, such as a path over an undefined switch."""
    data = json.loads(json.dumps(YAML(typ="safe").load(path)))
    for section in ("topology", "traffic", "switches", "hosts"):
        load(json.dumps({key: value for key, value in data.items() if key != section}).encode())


@given(st.lists(st.sampled_from([*KEYS, "0", "victim", ""]), max_size=4), values)
def test_any_setting(path: list[str], value: object) -> None:
    """A `--set` names a random path and a random value."""
    load(INCAST.read_bytes(), f"{'.'.join(path)}={json.dumps(value)}")


def _keys(inside: object) -> list[Any]:
    if isinstance(inside, dict):
        return list(inside)
    return list(range(len(inside))) if isinstance(inside, list) else []


def _change(inside: Any, key: Any, data: st.DataObject) -> None:
    what = data.draw(st.sampled_from(["replace", "drop", "rename"]))
    old = inside.pop(key)
    if what == "replace":
        value = data.draw(values)
        inside.insert(key, value) if isinstance(inside, list) else inside.update({key: value})
    elif what == "rename" and isinstance(inside, dict):
        inside[data.draw(st.sampled_from(KEYS))] = old
