"""Text -> plain data, and the place of each key.

The YAML is composed, not loaded: one walk over the tree of nodes makes dicts, lists and scalars.
So every key has a place, all duplicate keys are found and not only the first, and no tag can make
Python objects.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from emu.spec.diagnostic import Diagnostic, KeyPath, Place, Places
from emu.spec.numbers import leading_zero
from emu.spec.plain_yaml import plain_nodes

MAX_BYTES = 1_000_000
MAX_KEYS = 40_000
"""The most keys of a spec, since a short text with aliases can expand to a huge one. The largest
fabric, 1024 hosts with each cable listed, needs half as many."""
_TOO_MANY_KEYS = f"has more than {MAX_KEYS} keys, so it cannot be a spec"
MAX_NODES = 2 * MAX_KEYS
"""A key and its value are two nodes."""

_ODD_SPACE = re.compile("[\u00a0\u1680\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]")
_AFTER_COLON = re.compile(f"^[A-Za-z_]+:({_ODD_SPACE.pattern})")
"""`ecn:` and a character that looks like a space: YAML reads all of it as one text."""
_LEADING_ZERO = re.compile("[-+]?0[0-9]+")
_MERGE = "<<"
_TAG = "tag:yaml.org,2002:"
_HALF = re.compile("[\ud800-\udfff]")
"""Surrogates: half of a character's UTF-16 code."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Unicode's control characters (category Cc) without the tab and the line feed."""
_TYPED = {_TAG + name for name in ("null", "bool", "int", "float")}


@dataclass
class Document:
    """A spec's text as data: dicts, lists, str, int, float, bool, None."""

    data: Any
    places: Places
    findings: list[Diagnostic] = field(default_factory=list)


class Unreadable(Exception):
    """The text cannot be read as YAML. `finding` has the reason."""

    def __init__(self, text: str, place: Place) -> None:
        super().__init__(text)
        self.finding = Diagnostic((), text, place=place)


def read(text: bytes, source: str) -> Document:
    """Reads a spec's text. `source` is its name in places. Raises Unreadable."""
    start = Place(1, 1, source)
    if len(text) > MAX_BYTES:
        raise Unreadable(f"is longer than {MAX_BYTES} bytes, so it cannot be a spec", start)
    decoded = _decoded(text, source)
    try:
        root = plain_nodes(decoded, MAX_NODES) or compose(decoded, source)
    except Unreadable as unreadable:
        raise _odd_space(decoded, source) or unreadable from None
    if root is None:
        raise Unreadable("is empty; a spec needs at least `topology:`", start)
    document = Document(None, Places(start))
    try:
        document.data = _Walk(document, source).value(root, ())
    except RecursionError:
        raise Unreadable("is nested too deeply to be a spec", start) from None
    return document


def _odd_space(text: str, source: str) -> Unreadable | None:
    """An error for the first character that looks like a space but is not one in YAML.

    Pasted text often has such characters. The parser may report an error far from them.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        found = _ODD_SPACE.search(line.partition("#")[0])
        if found:
            place = Place(number, found.start() + 1, source)
            return Unreadable(_what_odd_space(found[0]), place)
    return None


def _what_odd_space(char: str) -> str:
    name = "a no-break space" if char == "\u00a0" else unicodedata.name(char, "a space").lower()
    return (
        f"has {name} (U+{ord(char):04X}), which looks like a space but is not one in YAML; type "
        "a plain space instead"
    )


def _decoded(text: bytes, source: str) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8", "replace")
        raise Unreadable(
            f"is not text in UTF-8 (byte 0x{text[error.start]:02x})", _end_of(before, source)
        ) from None


def _end_of(text: str, source: str) -> Place:
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"), source)


class _LimitedComposer(Composer):
    """Stops at a limit on nodes, so that a text with too many keys costs little time."""

    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            mark = self.parser.peek_event().start_mark
            raise _TooManyNodes(mark.line + 1, mark.column + 1)
        return super().compose_node(parent, index)


class _TooManyNodes(Exception):
    """Line and column of the first node over the limit."""


def compose(text: str, source: str) -> Node | None:
    """The root node, by ruamel's own parser; None: the text is empty. Raises Unreadable."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _LimitedComposer
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            root: Node | None = yaml.compose(text)
            return root
    except _TooManyNodes as error:
        line, column = error.args
        raise Unreadable(_TOO_MANY_KEYS, Place(line, column, source)) from None
    except ReaderError as error:
        place = _end_of(text[: error.position], source)
        raise Unreadable("is not a text file: it has control characters", place) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1, mark.column + 1, source) if mark else Place(1, 1, source)
        raise Unreadable(f"is not valid YAML: {_problem(error)}", place) from None
    except RecursionError:
        raise Unreadable("is nested too deeply to be a spec", Place(1, 1, source)) from None
    except (YAMLError, ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
        # Some malformed texts make the parser fail with another exception than YAMLError.
        raise Unreadable(f"is not valid YAML: {error}", Place(1, 1, source)) from None


def _problem(error: MarkedYAMLError) -> str:
    parts = (error.context, error.problem) if _continues(error) else (error.problem,)
    problem = " ".join(" ".join(map(str, parts)).split())
    if "'\\t'" in problem:
        return "a tab where only spaces are allowed"
    return _PLAIN.get(problem, problem)


_INDENT = (
    "the indent is wrong: keys of one mapping begin in the same column, and the contents of a key "
    "begin further right than the key"
)
_PLAIN = {
    "expected <block end>, but found '<block mapping start>'": _INDENT,
    "expected <block end>, but found '<block sequence start>'": _INDENT,
    "expected <block end>, but found '-'": _INDENT,
    "expected <block end>, but found '?'": _INDENT,
    "expected <block end>, but found '<scalar>'": _INDENT,
    "mapping values are not allowed here": "a second `: ` inside of a value: either the indent of "
    "this line is wrong, or the `:` of the line before it lacks its space, or a text with `: ` "
    "lacks its quotes",
}
"""The parser's message -> ours."""


def _continues(error: MarkedYAMLError) -> bool:
    """Whether `problem` continues a sentence that begins in `context`."""
    return error.problem is None or error.problem.startswith("but ")


_IN_ITSELF = "an alias is inside of the value that it refers to"


class _Walk:
    """One walk over a tree of YAML nodes."""

    def __init__(self, document: Document, source: str) -> None:
        self._document = document
        self._source = source
        self._scalars = YAML(typ="safe", pure=True).constructor
        self._open: set[int] = set()
        self._keys = 0

    def value(self, node: Node, path: KeyPath) -> Any:
        """The data of a node. Records the places of all keys in it."""
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            raise Unreadable(_IN_ITSELF, self._place(node))
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return self._sequence(node, path)
            assert isinstance(node, MappingNode)
            return self._mapping(node, path)
        finally:
            self._open.remove(id(node))

    def _sequence(self, node: SequenceNode, path: KeyPath) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            self._note((*path, index), item)
            items.append(self.value(item, (*path, index)))
        return items

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        first: dict[str, Node] = {}
        merged: list[Node] = []
        for key, value in self._pairs(node):
            name = self._text(key)
            if name == _MERGE and key.style is None:
                merged.append(value)
                continue
            if name in first:
                self._duplicate(name, path, key, first[name])
                continue
            first[name] = key
            self._note((*path, name), key)
            mapping[name] = self.value(value, (*path, name))
        for value in merged:
            self._merge(value, mapping, path)
        return mapping

    def _merge(self, node: Node, mapping: dict[str, Any], path: KeyPath) -> None:
        """`<<: *defaults`, or `<<: [*these, *those]`: adds the keys that the mapping does not have.
        If several sources have a key, the first one wins."""
        for source in node.value if isinstance(node, SequenceNode) else [node]:
            if not isinstance(source, MappingNode):
                text = "<< takes a mapping, like *defaults, or a list of mappings"
                raise Unreadable(text, self._place(source))
            if id(source) in self._open:
                raise Unreadable(_IN_ITSELF, self._place(source))
            self._open.add(id(source))
            try:
                self._merge_mapping(source, mapping, path)
            finally:
                self._open.remove(id(source))

    def _merge_mapping(self, node: MappingNode, mapping: dict[str, Any], path: KeyPath) -> None:
        farther = []
        for key, value in self._pairs(node):
            name = self._text(key)
            if name == _MERGE and key.style is None:
                farther.append(value)
            elif name not in mapping:
                self._note((*path, name), key)
                mapping[name] = self.value(value, (*path, name))
        for value in farther:
            self._merge(value, mapping, path)

    def _pairs(self, node: MappingNode) -> Iterator[tuple[ScalarNode, Node]]:
        """Keys and values of a mapping whose keys are plain words."""
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise Unreadable("a key must be a word", self._place(key))
            odd = _ODD_SPACE.search(str(key.value))
            if odd:
                raise Unreadable(_what_odd_space(odd[0]), self._place(key))
            yield key, value

    def _duplicate(self, name: str, path: KeyPath, key: Node, first: Node) -> None:
        text = f"is given twice, first in line {first.start_mark.line + 1}; keep one of them"
        finding = Diagnostic((*path, name), text, place=self._place(key))
        self._document.findings.append(finding)

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        if node.tag not in _TYPED:
            text = self._text(node)
            odd = _AFTER_COLON.search(text) if node.style is None else None
            if odd:
                raise Unreadable(_what_odd_space(odd[1]), self._place(node))
            return text
        if _LEADING_ZERO.fullmatch(str(node.value)):
            self._document.findings.append(Diagnostic(path, leading_zero(str(node.value))))
        try:
            return self._scalars.construct_object(node)
        except (YAMLError, ValueError, LookupError):
            text = f"{node.value!r:.40} is not a valid {node.tag.removeprefix(_TAG)}"
            self._document.findings.append(Diagnostic(path, text))
            return None

    def _text(self, node: ScalarNode) -> str:
        """The text of a scalar. Raises Unreadable for control characters and for surrogates, which
        escapes can write (`"\\ud800"`) and which cannot be printed."""
        text = str(node.value)
        if _HALF.search(text):
            raise Unreadable(
                "an escape stands for half of a character; write the whole character",
                self._place(node),
            )
        control = _CONTROL.search(text)
        if control:
            raise Unreadable(
                f"has the control character U+{ord(control[0]):04X}, which a terminal would "
                "act on; take it out",
                self._place(node),
            )
        return text

    def _note(self, path: KeyPath, node: Node) -> None:
        self._keys += 1
        if self._keys > MAX_KEYS:
            raise Unreadable(_TOO_MANY_KEYS, self._place(node))
        self._document.places.add(path, self._place(node))

    def _place(self, node: Node) -> Place:
        return Place(node.start_mark.line + 1, node.start_mark.column + 1, self._source)
