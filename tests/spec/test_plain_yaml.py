"""libyaml and ruamel give the same nodes: values, kinds, lines and
columns, where libyaml is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml.nodes import Node, ScalarNode

from emu.spec.document import MAX_NODES, Unreadable, compose
from emu.spec.plain_yaml import plain_nodes

ROOT = Path(__file__).parents[2]
SPECS = sorted([*(ROOT / "topologies").glob("*.emu.yml"), *(ROOT / "tests").rglob("*.emu.yml")])
WORDS = (
    *("a", "on", "no", "true", "~", "null", "0x1F", "0o17", "017", "1_0", "1e3", ".5", "-.inf"),
    *("12:30", "2026-01-01", "=", "<<", "100Gbit", "20%", "h1-h8", "leaf1:h1", "ä", "\u00a0"),
    *(": ", ":", "- ", "-", "? ", ",", "[", "]", "{", "}", "'", '"', "\\", "\\n", "\\/", "#"),
    *(" #", "|", ">", "|+", "\n", "\n  ", "\n    ", " ", "\t", "---", "...", "%YAML 1.1", "!!str"),
    *("&x ", "*x", "@", "`", "\r\n", "\r", "\u2028", "\ufeff", "\U0001f600"),
)


def _tree(node: Node) -> Any:
    """All properties of a node that loading a spec uses."""
    at = (node.start_mark.line, node.start_mark.column)
    if isinstance(node, ScalarNode):
        return at, node.tag, node.value, node.style
    if str(node.tag).endswith(":map"):
        return at, node.tag, [(_tree(key), _tree(value)) for key, value in node.value]
    return at, node.tag, [_tree(item) for item in node.value]


def _compare(text: str) -> bool:
    """Whether libyaml parses the text. If so, ruamel must give the same nodes."""
    quick = plain_nodes(text, MAX_NODES)
    if quick is None:
        return False
    try:
        whole = compose(text, "any")
    except Unreadable as unreadable:
        pytest.fail(f"{text!r} is no YAML for ruamel: {unreadable}")
    assert whole is not None, repr(text)
    assert _tree(quick) == _tree(whole), repr(text)
    return True


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_every_spec_has_the_same_nodes(path: Path) -> None:
    """The files are all valid and all broken specs of the project."""
    _compare(path.read_bytes().decode("utf-8-sig", "replace"))


def test_shipped_specs_are_read_by_libyaml() -> None:
    """The slower parser in Python reads unusual files only."""
    for path in (ROOT / "topologies").glob("*.emu.yml"):
        text = path.read_text(encoding="utf-8")
        assert _compare(text) or "&" in text, path.name


@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join))
@settings(max_examples=400)
def test_text_of_yaml_words_has_the_same_nodes(text: str) -> None:
    """The text consists of words that have a meaning in YAML."""
    _compare(text)
    _compare(f"a:\n  b: {text}\n")


_UNUSUAL = {
    "alias": "a: &x 1\nb: *x\n",
    "tag": "a: !!str 1\n",
    "directive": "%YAML 1.1\n---\na: on\n",
    "documents": "a: 1\n---\nb: 2\n",
    "line separator": "a: 1\u2028b: 2\n",
    "nesting": "a: [" * 60,
    "pair": "a: [b: 1]\n",
    "block": "a: |\n  b\n",
    "tab": "a:\tb\n",
    "no value": "a:\nb: 1\n",
    "empty": "",
}


@pytest.mark.parametrize("text", _UNUSUAL.values(), ids=_UNUSUAL)
def test_unusual_text_is_left_to_ruamel(text: str) -> None:
    """libyaml reads YAML 1.1 and does not report everything that findings need."""
    assert plain_nodes(text, MAX_NODES) is None


def test_too_many_nodes_are_left_to_ruamel() -> None:
    """ruamel finds the place of the first node over the limit."""
    assert plain_nodes("[1, 2, 3]", 4) is not None
    assert plain_nodes("[1, 2, 3, 4]", 4) is None
