"""The topology text of HPCC's ns-3 simulator, which many other simulators use as well.

    6 2 5                      nodes, switches, links
    4 5                        the switches; all other nodes are hosts, counted from 0
    0 4 100Gbps 1000ns 0       a link: two nodes, rate, delay, share of lost packets
    ...

The simulator reads nothing after the last link. So the names of nodes follow there: `# 0 h1`.
"""

from __future__ import annotations

import re
from collections import Counter

from emu.units import parse_rate, parse_time, write_rate, write_time
from topologies.graph import Topology
from topologies.text.net import Lines, Net, NetLink, names_for

_NUMBER = re.compile("[0-9]{1,9}")
_RATE = re.compile(r"([0-9.]+)([kKMG]?)b(?:ps|/s)")
_DELAY = re.compile(r"[0-9.]+(?:s|ms|us|ns|ps)")
_NAME = re.compile(r"# ([0-9]{1,9}) (\S+)")
_UNITS = {10**9: "G", 10**6: "M", 10**3: "k", 1: ""}
_FIRST = "the first line has three numbers: nodes, switches and links, like 6 2 5"


def recognises(text: str) -> bool:
    """Whether the text begins like this format."""
    return re.match(r"\s*[0-9]+\s+[0-9]+\s+[0-9]+\s", text) is not None


def read(text: str, source: str) -> Net:
    """Raises SpecError with all mistakes, by line."""
    lines = Lines(text, source)
    rows = [(number, line.split()) for number, line in lines.numbered() if line]
    counts = _numbers(lines, rows[0] if rows else (1, []), _FIRST)
    if len(counts) != 3:
        lines.wrong(1, _FIRST)
        lines.check()
    nodes, switch_count, link_count = counts
    switches = _switches(lines, rows[1:2], nodes, switch_count)
    ends = _links(lines, rows[2 : 2 + link_count], nodes, link_count)
    if nodes > 2 * link_count:
        lines.wrong(1, f"{link_count} links are too few for {nodes} nodes; correct the first line")
    lines.check()
    _hosts_have_one_link(lines, ends, nodes, switches)
    lines.check()
    return _named(lines, ends, nodes, switches)


def write(topology: Topology) -> str:
    """Hosts have the first numbers, then switches; their names are at the end of the text."""
    names = [*topology.host, *topology.switch]
    number = {name: index for index, name in enumerate(names)}
    links = [
        f"{number[cable.a.node]} {number[cable.b.node]} {_write_rate(cable.rate_bps)} "
        f"{write_time(cable.delay_ps)} 0"
        for cable in topology.cables
    ]
    first = f"{len(names)} {len(topology.switches)} {len(links)}"
    switches = " ".join(str(number[name]) for name in topology.switch)
    named = [f"# {index} {name}" for name, index in number.items()]
    return "\n".join([first, switches, *links, *named]) + "\n"


Row = tuple[int, list[str]]
"""The number of a line, and its words."""
End = tuple[Row, NetLink]


def _numbers(lines: Lines, row: Row, what: str) -> list[int]:
    number, words = row
    if all(map(_NUMBER.fullmatch, words)):
        return [int(word) for word in words]
    lines.wrong(number, what)
    return []


def _switches(lines: Lines, rows: list[Row], nodes: int, count: int) -> list[int]:
    row = rows[0] if rows else (len(lines.lines), [])
    what = f"the second line has the numbers of {count} switches, each once and below {nodes}"
    switches = _numbers(lines, row, what)
    if switches and (len(set(switches)) != count or max(switches) >= nodes):
        lines.wrong(row[0], what)
    return switches


def _links(lines: Lines, rows: list[Row], nodes: int, count: int) -> list[End]:
    if len(rows) < count:
        lines.wrong(
            len(lines.lines), f"there are {len(rows)} links, not {count}; correct the first line"
        )
    links = ((row, _link(lines, row, nodes)) for row in rows)
    return [(row, link) for row, link in links if link is not None]


def _link(lines: Lines, row: Row, nodes: int) -> NetLink | None:
    number, words = row
    if len(words) != 5 or not all(_is_node(word, nodes) for word in words[:2]):
        lines.wrong(
            number, f"a link is two nodes below {nodes}, rate, delay, loss: 0 4 100Gbps 1000ns 0"
        )
        return None
    a, b, rate, delay, loss = words
    if int(a) == int(b):
        lines.wrong(number, f"joins {a} to itself; a link needs two nodes")
    if loss.strip("0.") != "":
        lines.wrong(
            number, f"loss {loss}: cables lose nothing here; put 0, and a loss into faults:"
        )
    return NetLink(
        str(int(a)),
        str(int(b)),
        lines.understood(number, lambda: _rate(rate)),
        lines.understood(number, lambda: _delay(delay)),
    )


def _is_node(word: str, nodes: int) -> bool:
    return _NUMBER.fullmatch(word) is not None and int(word) < nodes


def _rate(text: str) -> str:
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"rate {text!r} is not understood; write it like 100Gbps")
    return write_rate(parse_rate(f"{match[1]}{match[2].upper().replace('K', 'k')}bit"))


def _write_rate(bps: int) -> str:
    """The rate for ns-3, which has no unit T."""
    factor, unit = next((f, u) for f, u in _UNITS.items() if bps % f == 0)
    return f"{bps // factor}{unit}bps"


def _delay(text: str) -> str:
    if _DELAY.fullmatch(text) is None:
        raise ValueError(f"delay {text!r} is not understood; write it like 1000ns")
    return write_time(parse_time(text))


def _hosts_have_one_link(lines: Lines, ends: list[End], nodes: int, switches: list[int]) -> None:
    cables = Counter(int(name) for _, link in ends for name in (link.a, link.b))
    for (number, _), link in ends:
        for name in (link.a, link.b):
            if int(name) not in switches and cables[int(name)] > 1:
                lines.wrong(
                    number,
                    f"host {name} has {cables[int(name)]} links, and a host has exactly one; name "
                    "it among the switches, or take links out",
                )
    for host in sorted(set(range(nodes)) - set(switches) - set(cables)):
        lines.wrong(1, f"host {host} has no link; add one, or correct the number of nodes")


def _named(lines: Lines, ends: list[End], nodes: int, switches: list[int]) -> Net:
    given_names = {
        int(match[1]): match[2]
        for _, line in lines.numbered()
        if (match := _NAME.fullmatch(line)) is not None
    }
    hosts = sorted(set(range(nodes)) - set(switches))
    taken: set[str] = set()
    name: dict[int, str] = {}
    for numbers, prefix in ((switches, "s"), (hosts, "h")):
        wanted = [given_names.get(number, "") for number in numbers]
        name |= zip(numbers, names_for(wanted, prefix, taken), strict=True)
    return Net(
        switches=tuple(name[number] for number in switches),
        hosts=tuple(name[number] for number in hosts),
        links=tuple(
            NetLink(name[int(link.a)], name[int(link.b)], link.rate, link.delay) for _, link in ends
        ),
        origin={
            own: f"node {number}" for number, own in name.items() if given_names.get(number) != own
        },
    )
