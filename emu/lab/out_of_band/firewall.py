"""The firewall of the management network, for nftables: nothing passes that is not allowed.

At each agent and at the collector, every packet that begins a conversation needs a rule for its
source and service (`filter`, hook `input`). The management switch passes IPv4 and ARP alone, and
only with the source address of the port that they come from, so that no agent can pretend to be
another one.

Source: nft(8).
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.lab.out_of_band.network import INTERFACE, Network
from emu.spec.management import Cell

TABLE = "management"


def rules_of_member(network: Network, name: str) -> str:
    """The ruleset in a member's namespace."""
    return "".join(f"{line}\n" for line in _of_member(network, name))


def _of_member(network: Network, name: str) -> Iterator[str]:
    yield f"table inet {TABLE} {{"
    yield "  chain input {"
    yield "    type filter hook input priority filter; policy drop;"
    yield "    iifname lo accept"
    yield "    ct state established,related accept"
    for cell in sorted(network.cells):
        if cell.target == name:
            yield f"    {_rule(network, cell)}"
    yield "  }"
    yield "  chain forward {"
    yield "    type filter hook forward priority filter; policy drop;"
    yield "  }"
    yield "}"


def _rule(network: Network, cell: Cell) -> str:
    source = f"iifname {INTERFACE} ip saddr {network.addresses[cell.source]}"
    if cell.service == "icmp":
        return f"{source} icmp type echo-request accept"
    protocol, _, port = cell.service.partition("/")
    return f"{source} {protocol} dport {port} accept"


def rules_of_switch(network: Network) -> str:
    """The ruleset of the management switch."""
    ports = ", ".join(f'"{name}" . {address}' for name, address in network.addresses.items())
    return (
        f"table bridge {TABLE} {{\n"
        "  chain forward {\n"
        "    type filter hook forward priority filter; policy drop;\n"
        f"    iifname . ip saddr {{ {ports} }} accept\n"
        f"    iifname . arp saddr ip {{ {ports} }} accept\n"
        "  }\n"
        "}\n"
    )
