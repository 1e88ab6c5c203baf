"""The keys of a spec from the JSON schema, by path, with the keys below each.

switches.pfc.xoff                 a key
switches.nodes.leaf1.pfc.xoff     below a name that the spec chooses
traffic.incast.size               of a pattern; so are topology.leaf-spine.spines and the like
traffic.0.size                    of whichever patterns have such a key
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from emu.spec.schema import schema

Node = Mapping[str, Any]

NAME = "NAME"
"""Stands in a path for a name or number that the spec chooses."""


@dataclass(frozen=True)
class Key:
    path: tuple[str, ...]
    node: Node
    """Its schema within that of the parent key."""
    chooses: bool = False
    """Whether the last step is a kind or pattern, which a spec does not write there: `incast` in
    traffic.incast.size."""

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def meaning(self) -> str:
        return str(self.node.get("description") or resolved(self.node).get("description", ""))

    @property
    def children(self) -> list[Key]:
        return [Key((*self.path, *step), node, chooses) for step, node, chooses in _below(self)]


def root() -> Key:
    return Key((), schema())


def matching(words: tuple[str, ...]) -> list[Key]:
    """The keys that a path names: one, one for each pattern or kind that has it, or none."""
    if words[:1] == ("compare",) and len(words) > 2:
        return matching(words[2:])  # a variant has the keys of a spec
    found = [root()]
    for word in words:
        found = [child for key in found for child in _steps(key, word)]
    return found


def known_steps(words: tuple[str, ...]) -> list[str]:
    """The keys directly below a path."""
    children = [child for key in matching(words) for child in key.children]
    below = [child for choice in children if choice.chooses for child in choice.children]
    return list(dict.fromkeys(child.path[-1] for child in (*below, *children)))


@cache
def all_keys() -> tuple[Key, ...]:
    """Every key, parents first. The keys of roles and single switches are not repeated."""
    return tuple(_walk(root()))


def called(word: str) -> list[Key]:
    """Every key whose last word is this one."""
    return [key for key in all_keys() if key.path[-1] == word]


def resolved(node: Node) -> Node:
    """The mapping that a schema node refers to, lists, or allows as the alternative to `off`."""
    while True:
        if "anyOf" in node:
            node = node["anyOf"][0]
        elif "$ref" in node:
            node = schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        elif "items" in node and not isinstance(node.get("type"), list):
            node = node["items"]
        else:
            return node


def _below(key: Key) -> Iterator[tuple[tuple[str, ...], Node, bool]]:
    node = resolved(key.node)
    for word, child in node.get("properties", {}).items():
        yield (word,), child, False
    for word, reference in node.get("discriminator", {}).get("mapping", {}).items():
        yield (word,), {"$ref": reference}, True
    values = node.get("additionalProperties")
    if isinstance(values, Mapping):
        yield (NAME,), values, False


def _steps(key: Key, word: str) -> Iterator[Key]:
    children = key.children
    exact = [child for child in children if child.path[-1] == word]
    if exact:
        yield from exact
    elif _is_list(key.node) and word.isdigit():
        yield Key((*key.path, word), resolved(key.node))
    elif any(child.path[-1] == NAME for child in children):
        yield from (
            Key((*key.path, word), child.node) for child in children if child.path[-1] == NAME
        )
    else:
        for choice in (child for child in children if child.chooses):
            yield from (child for child in choice.children if child.path[-1] == word)


def _is_list(node: Node) -> bool:
    return "items" in node


_SAME_AGAIN = {
    ("switches", "roles"),
    ("switches", "nodes"),
    ("switches", "ports"),
    ("hosts", "nodes"),
}


def _walk(key: Key) -> Iterator[Key]:
    for child in key.children:
        yield child
        if child.path not in _SAME_AGAIN:
            yield from _walk(child)
