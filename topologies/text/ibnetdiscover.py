"""The output of `ibnetdiscover` for an InfiniBand subnet, and ibsim's similar net files.

    Switch  8 "S-0000000000100001"   # "leaf1" base port 0 lid 2 lmc 0
    [1]  "H-0000000000200002"[1](200003)   # "h1" lid 1 4xEDR

    Ca  1 "H-0000000000200002"       # "h1"
    [1](200003)  "S-0000000000100001"[1]   # lid 1 lmc 0 "leaf1" lid 2 4xEDR

A node is a switch or an adapter, with its number of ports. The lines below it are its ports with
cables: the far end of the cable and, at the end of the line, the rate. Each cable is listed at both
ends. Each port of an adapter becomes a host of its own here. The text has no delays.

Instead of the rate, a net file may give the widths and speeds that a port has enabled, as the bits
of LinkWidthEnabled, LinkSpeedEnabled and LinkSpeedExtEnabled: `w=1 s=7 e=2`. `width=`, `speed=` and
`extspeed=` at the beginning of a line hold for all ports below it. A link has the greatest width
and speed that both ends have enabled. If nothing is given it is 4x SDR, as in ibsim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial

from emu.errors import UsageError
from emu.ib_rates import parse_ib_rate, write_ib_rate
from emu.units import write_rate
from topologies.graph import Host, Port, Switch, Topology
from topologies.guids import host_guid, port_number, switch_guid
from topologies.text.net import Lines, Net, NetLink, names_for

_NODE = re.compile(r'(Switch|Ca|Hca|Rt)\s+([0-9]{1,9})\s+"([^"]+)"(?:\s*#\s*"([^"]*)")?.*')
_PORT = re.compile(
    r'\[([0-9]{1,9})\](?:\[ext [0-9]+\])?(?:\([0-9a-f]+\))?\s*"([^"]+)"(?:\[([0-9]{1,9})\])?(.*)'
)
_RUNS_AT = re.compile(r"\b([0-9]{1,9}x[A-Z0-9]+)\s*$")
_ENABLED = re.compile(r"\b([wse])=([0-9]{1,9})")
_ENABLED_BELOW = re.compile(r"(width|speed|extspeed)=([0-9]{1,9})")
_LETTER = {"width": "w", "speed": "s", "extspeed": "e"}
_UNLESS_SAID = {"w": 2, "s": 1, "e": 0}
_ABOUT = re.compile(r"#.*|[a-z]+=.*|")
"""Lines without cables: comments, GUIDs and other identifiers, and blank lines."""
_SPEEDS = {("e", 3): "NDR", ("e", 2): "HDR", ("e", 1): "EDR", ("e", 0): "FDR"} | {
    ("s", 2): "QDR",
    ("s", 1): "DDR",
    ("s", 0): "SDR",
}
"""LinkSpeedExtEnabled and LinkSpeedEnabled by bit, fastest first."""
_WIDTHS = {3: 12, 2: 8, 1: 4, 4: 2, 0: 1}
"""LinkWidthEnabled by bit, widest first -> lanes."""

Enabled = dict[str, int]
"""`w`, `s`, `e` -> bits, for those that the text gives."""


@dataclass
class _Node:
    kind: str
    ports: int
    id: str
    wanted: str
    """The name that the spec uses if it can: its description, or its id if it has none."""
    line: int
    cables: dict[int, _Cable] = field(default_factory=dict)


@dataclass(frozen=True)
class _Cable:
    line: int
    to: End
    rate: str
    """Its rate as in a spec: `4x EDR`. Empty if the text does not give it."""
    enabled: Enabled


End = tuple[str, int]
"""An end of a cable: the id of the node, and the port."""
Owner = tuple[_Node, tuple[int, ...]]
"""A future node of the spec: a switch with its ports, or an adapter with one of its ports."""


def read(text: str, source: str) -> Net:
    """Raises SpecError with all mistakes, by line."""
    lines = Lines(text, source)
    nodes = _nodes(lines)
    _nodes_have_cables(lines, nodes)
    _cables_have_two_ends(lines, nodes)
    rates = _rates(lines, nodes)
    lines.check()
    switches: list[Owner] = [
        (node, tuple(node.cables)) for node in nodes.values() if node.kind == "Switch"
    ]
    hosts: list[Owner] = [
        (node, (port,)) for node in nodes.values() if node.kind != "Switch" for port in node.cables
    ]
    taken: set[str] = set()
    switch_names = _names(switches, "s", taken)
    host_names = _names(hosts, "h", taken)
    owners = dict(zip([*switch_names, *host_names], [*switches, *hosts], strict=True))
    name = {(node.id, port): own for own, (node, ports) in owners.items() for port in ports}
    return Net(
        switches=tuple(switch_names),
        hosts=tuple(host_names),
        links=tuple(NetLink(name[end], name[far], rate) for (end, far), rate in rates.items()),
        origin={
            own: f"{node.wanted} ({node.id})"
            for own, (node, _) in owners.items()
            if own != node.wanted
        },
    )


def _names(owners: list[Owner], prefix: str, taken: set[str]) -> list[str]:
    return names_for([node.wanted for node, _ in owners], prefix, taken)


def write(topology: Topology) -> str:
    """Raises UsageError for a cable whose rate is not that of an InfiniBand link."""
    return "\n\n".join(_write_node(topology, node) for node in topology.nodes) + "\n"


# ---- reading -----------------------------------------------------------------


def _nodes(lines: Lines) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    node: _Node | None = None
    below: Enabled = {}
    for number, line in lines.numbered():
        if found := _NODE.fullmatch(line):
            node = _Node(found[1], int(found[2]), found[3], found[4] or found[3], number)
            if found[1] == "Rt":
                lines.wrong(number, "routers are not emulated; take it out, and its cables")
            if nodes.setdefault(node.id, node) is not node:
                lines.wrong(number, f"there is a node {node.id!r} already; take one of them out")
        elif found := _PORT.fullmatch(line):
            _add_cable(lines, number, node, found, below)
        elif found := _ENABLED_BELOW.fullmatch(line):
            below = below | {_LETTER[found[1]]: int(found[2])}
        elif _ABOUT.fullmatch(line) is None:
            lines.wrong(
                number,
                'is neither a node, like Switch 8 "S-1", nor a port with a cable, like '
                '[1] "H-1"[1]; correct it or take it out',
            )
    if not nodes:
        lines.wrong(1, 'has no node; each begins with a line like Switch 8 "S-1"')
    return nodes


def _add_cable(
    lines: Lines, number: int, node: _Node | None, found: re.Match[str], below: Enabled
) -> None:
    port = int(found[1])
    if node is None:
        lines.wrong(number, 'is a port before any node; begin with a line like Switch 8 "S-1"')
    elif not 1 <= port <= node.ports:
        lines.wrong(number, f"{node.id} has ports 1 to {node.ports}, not {port}")
    elif port in node.cables:
        lines.wrong(number, f"port {port} of {node.id} has a cable already; take one of them out")
    else:
        rate = lines.understood(number, lambda: _runs_at(found[4]))
        enabled = below | {letter: int(bits) for letter, bits in _ENABLED.findall(found[4])}
        node.cables[port] = _Cable(number, (found[2], int(found[3] or 1)), rate, enabled)


def _runs_at(rest: str) -> str:
    """The rate at the end of a line. Raises ValueError if InfiniBand has no such rate."""
    found = _RUNS_AT.search(rest)
    if found is None:
        return ""
    parse_ib_rate(found[1])
    return found[1].replace("x", "x ")


def _nodes_have_cables(lines: Lines, nodes: dict[str, _Node]) -> None:
    for node in nodes.values():
        if not node.cables:
            lines.wrong(node.line, f"{node.id} has no cable; list one below, or take the node out")


def _cables_have_two_ends(lines: Lines, nodes: dict[str, _Node]) -> None:
    for node in nodes.values():
        for port, cable in node.cables.items():
            far, far_port = cable.to
            if far not in nodes:
                lines.wrong(cable.line, f"leads to {far!r}, which is not there; add that node")
                continue
            back = nodes[far].cables.get(far_port)
            if back is None or back.to != (node.id, port):
                lines.wrong(
                    cable.line,
                    f"leads to port {far_port} of {far}, which does not lead back to port {port} "
                    f"of {node.id}; list the cable at both its ends",
                )


def _rates(lines: Lines, nodes: dict[str, _Node]) -> dict[tuple[End, End], str]:
    """The rate of each cable with two ends, once; its key begins with the end listed first."""
    rates: dict[tuple[End, End], str] = {}
    for node in nodes.values():
        for port, cable in node.cables.items():
            own, far = (node.id, port), cable.to
            back = nodes[far[0]].cables.get(far[1]) if far[0] in nodes else None
            if back is not None and (far, own) not in rates:
                both = cable.enabled, back.enabled
                found = partial(_common_rate, *both) if any(both) else str
                rates[own, far] = cable.rate or lines.understood(cable.line, found)
    return rates


def _common_rate(own: Enabled, far: Enabled) -> str:
    """The highest rate that both ends have enabled. Raises ValueError if there is none."""
    bits = {
        letter: own.get(letter, unless) & far.get(letter, unless)
        for letter, unless in _UNLESS_SAID.items()
    }
    lanes = next((lanes for bit, lanes in _WIDTHS.items() if bits["w"] >> bit & 1), None)
    speed = next((name for (letter, bit), name in _SPEEDS.items() if bits[letter] >> bit & 1), None)
    if lanes is None or speed is None:
        what = "width (w=)" if lanes is None else "speed (s=, e=)"
        raise ValueError(f"has no {what} enabled that its far end has; give both ends the same")
    return f"{lanes}x {speed}"


# ---- writing -----------------------------------------------------------------


def _write_node(topology: Topology, node: Host | Switch) -> str:
    ports = topology.ports[node.name]
    most = max((port.number for port in ports), default=1)
    if isinstance(node, Switch):
        first = f'Switch\t{most} "{_id(node)}"\t\t# "{node.name}" base port 0 lid 0 lmc 0'
        about = f"switchguid={switch_guid(node):#x}"
    else:
        first = f'Ca\t1 "{_id(node)}"\t\t# "{node.name}"'
        about = f"caguid={host_guid(node):#x}"
    return "\n".join([about, first, *(_write_port(topology, port) for port in ports)])


def _write_port(topology: Topology, port: Port) -> str:
    far = topology.peer[port]
    rate_bps = topology.cable[port].rate_bps
    rate = write_ib_rate(rate_bps)
    if rate is None:
        raise UsageError(
            f"{topology.port_name[port]}: {write_rate(rate_bps)} is no rate of an InfiniBand link; "
            "give the cable one like 4x EDR (100Gbit) or 1x EDR (25Gbit)"
        )
    node = {node.name: node for node in topology.nodes}[far.node]
    to = f'"{_id(node)}"[{port_number(topology, far)}]'
    return f'[{port_number(topology, port)}]\t{to}\t\t# "{far.node}" lid 0 {rate.replace(" ", "")}'


def _id(node: Host | Switch) -> str:
    if isinstance(node, Switch):
        return f"S-{switch_guid(node):016x}"
    return f"H-{host_guid(node):016x}"
