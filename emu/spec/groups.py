"""Groups of hosts by their place in the fabric, so that a pattern adapts to the fabric's size.

    all         every host                leaf2[0]     the first host of leaf2
    leaf2       the hosts of that switch  leaf2[1:]    all of them but the first
                                          all[-1]      the last host of all

Indices are those of Python's slices. A host's name precedes a group's: if a host is called `all`,
the word means that host.
"""

from __future__ import annotations

import re

from topologies.graph import Topology

_GROUP = re.compile(r"(?P<name>\w+)(?:\[(?P<first>-?\d+)?(?P<to>:)?(?P<end>-?\d+)?\])?")


class Expanded(tuple[str, ...]):
    """Names of hosts, with the words in the spec that stand for them."""

    written: tuple[str, ...]


def expanded(words: tuple[str, ...], topology: Topology) -> tuple[str, ...]:
    """The hosts that the words stand for, each once. Unknown words stay, for a rule to report."""
    hosts = Expanded(dict.fromkeys(host for word in words for host in _hosts(word, topology)))
    hosts.written = words
    return hosts


def _hosts(word: str, topology: Topology) -> list[str]:
    if word in topology.host:
        return [word]
    match = _GROUP.fullmatch(word)
    if match is None:
        return [word]
    first, to, end = match["first"], match["to"], match["end"]
    group = _group(match["name"], topology)
    if to is None and end is None and first is not None:
        place = int(first)
        return group[place:][:1] or [word]
    return group[_number(first) : _number(end)] or [word]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _group(name: str, topology: Topology) -> list[str]:
    if name == "all":
        return list(topology.host)
    far = (topology.peer[port].node for port in topology.ports.get(name, ()))
    return [node for node in far if node in topology.host]
