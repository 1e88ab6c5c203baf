"""YAML text -> ruamel's nodes, by libyaml, which is many times as fast as ruamel's own parser.

This module parses the plain YAML of most specs. It leaves unusual and invalid text to ruamel's own
parser, which supports YAML 1.2 and whose errors `emu.spec.document` reports: tags, anchors,
aliases, keys without a value, blocks of text, directives, several documents, more nesting than any
spec has, and any text that libyaml cannot parse.
"""

from __future__ import annotations

import re

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.resolver import implicit_resolvers
from ruamel.yaml.tag import Tag
from ruamel.yaml.util import LazyEval
from yaml import YAMLError
from yaml.cyaml import CParser
from yaml.events import (
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

_MAX_DEPTH = 50
_BLOCKS = ("|", ">")
_READ_OTHERWISE = re.compile("[\t\x85\u2028\u2029\ufeff]")
"""libyaml allows tabs in more places, and YAML 1.1 has more line breaks. A byte order mark
within the text has no width to ruamel."""


class _Unusual(Exception):
    """The text needs ruamel's parser."""


def plain_nodes(text: str, max_nodes: int) -> Node | None:
    """The root node; None if the text is unusual, empty or invalid, or has too many nodes."""
    if _READ_OTHERWISE.search(text):
        return None
    try:
        return _Composer(text, max_nodes).root()
    except (_Unusual, YAMLError, ValueError):
        return None


class _Composer:
    """One document's nodes from libyaml's events."""

    def __init__(self, text: str, max_nodes: int) -> None:
        self._event = CParser(text).get_event
        self._nodes_left = max_nodes

    def root(self) -> Node:
        self._event()
        start = self._event()
        if not isinstance(start, DocumentStartEvent) or start.version or start.tags:
            raise _Unusual
        node = self._node(self._event(), 0)
        self._event()
        if not isinstance(self._event(), StreamEndEvent):
            raise _Unusual
        return node

    def _node(self, event: Event, depth: int) -> Node:
        self._nodes_left -= 1
        if self._nodes_left < 0 or depth > _MAX_DEPTH or event.anchor or event.tag:
            raise _Unusual
        if isinstance(event, ScalarEvent):
            return _scalar(event)
        if isinstance(event, MappingStartEvent):
            return self._mapping(event, depth + 1)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(event, depth + 1)
        raise _Unusual

    def _mapping(self, start: MappingStartEvent, depth: int) -> MappingNode:
        pairs = []
        while not isinstance(event := self._event(), MappingEndEvent):
            key = self._node(event, depth)
            if start.flow_style and key.start_mark.index == start.start_mark.index:
                raise _Unusual  # [a: 1], a pair without braces; ruamel takes fewer forms of it
            pairs.append((key, self._node(self._event(), depth)))
        return MappingNode(_MAP, pairs, start.start_mark, event.end_mark, start.flow_style)

    def _sequence(self, start: SequenceStartEvent, depth: int) -> SequenceNode:
        items = []
        while not isinstance(event := self._event(), SequenceEndEvent):
            items.append(self._node(event, depth))
        return SequenceNode(_SEQ, items, start.start_mark, event.end_mark, start.flow_style)


def _scalar(event: ScalarEvent) -> ScalarNode:
    """Plain text has the style None in ruamel's nodes. The two parsers place a missing value
    differently."""
    missing = not event.value and event.implicit[0]
    if missing or event.style in _BLOCKS:
        raise _Unusual
    tag = _tag_of(event.value) if event.implicit[0] else _STR
    return ScalarNode(tag, event.value, event.start_mark, event.end_mark, event.style or None)


def _tag_of(plain: str) -> Tag:
    """The tag of plain text in YAML 1.2: a number, a boolean, null or text."""
    for tag, pattern in _RESOLVERS.get(plain[:1], ()):
        if pattern.match(plain):
            return tag
    return _STR


def _resolvers() -> dict[str, list[tuple[Tag, LazyEval]]]:
    """First character -> the types that a text with this first character can have."""
    table: dict[str, list[tuple[Tag, LazyEval]]] = {}
    for versions, tag, pattern, first in implicit_resolvers:
        for char in first if (1, 2) in versions else ():
            table.setdefault(char, []).append((Tag(suffix=tag), pattern))
    return table


_RESOLVERS = _resolvers()
_STR, _SEQ, _MAP = (Tag(suffix=f"tag:yaml.org,2002:{kind}") for kind in ("str", "seq", "map"))
