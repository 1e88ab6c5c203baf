"""The frr.conf of a switch: one eBGP session on each cable to another switch, without addresses on
the cables.

Sources: RFC 7938 (use of BGP); RFC 8950 (IPv4 routes by IPv6 next hops); FRR's user guide, BGP and
BFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from emu.bgp.numbering import autonomous_systems, loopback
from emu.errors import UsageError
from emu.spec.bgp import Bgp
from emu.spec.scenario import Spec
from topologies.graph import Port, Topology

_GROUP = "fabric"
_BFD_PROFILE = "fabric"
_PS_PER_S = 10**12
_OF_OTHERS = re.compile(r"(ip|ipv6) route |router (?!bgp\b)|vrrp |pim |mpls ldp")
"""Commands of FRR's other daemons. vtysh accepts them without a message and drops them."""


def frr_confs(spec: Spec) -> dict[str, str]:
    """The text for each switch: the user's own, or one after the spec. Raises UsageError."""
    topology = spec.topology.build()
    numbers = autonomous_systems(topology)
    return {
        name: _own(bgp.frr_conf)
        if bgp.frr_conf is not None
        else "\n".join(_lines(topology, name, numbers[name], bgp)) + "\n"
        for name, bgp in ((name, spec.switch(name).routing.bgp) for name in topology.switch)
    }


def _own(file: str) -> str:
    """The text of a user's file, without lines about the places of logs: the lab has its own.
    Raises UsageError."""
    try:
        lines = Path(file).read_text().splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"{file}: cannot be read as a frr.conf: {reason}") from None
    for number, line in enumerate(lines, 1):
        if _OF_OTHERS.match(line):
            raise UsageError(
                f"{file}: line {number}: '{line.strip()}' is for a daemon that does not run here; "
                "only zebra, bgpd and bfdd do, so take it out"
            )
    return "".join(f"{line}\n" for line in lines if not line.startswith("log "))


def session_ports(topology: Topology, switch: str) -> list[Port]:
    """The ports of a switch that have a session: those towards other switches."""
    return [port for port in topology.ports[switch] if topology.peer[port].node in topology.switch]


def _lines(topology: Topology, switch: str, number: int, bgp: Bgp) -> Iterator[str]:
    yield "frr defaults datacenter"
    yield f"hostname {switch}"
    yield "!"
    yield "no zebra nexthop kernel enable"
    yield "!"
    yield f"router bgp {bgp.asn or number}"
    yield f" bgp router-id {loopback(topology, switch)}"
    yield " no bgp ebgp-requires-policy"
    yield f"{'' if bgp.multipath_relax else ' no'} bgp bestpath as-path multipath-relax"
    yield f" neighbor {_GROUP} peer-group"
    yield f" neighbor {_GROUP} remote-as external"
    yield f" neighbor {_GROUP} timers {bgp.keepalive_ps // _PS_PER_S} {bgp.hold_ps // _PS_PER_S}"
    yield f" neighbor {_GROUP} timers connect {bgp.connect_retry_ps // _PS_PER_S}"
    if bgp.bfd is not None:
        yield f" neighbor {_GROUP} bfd profile {_BFD_PROFILE}"
    for port in session_ports(topology, switch):
        yield f" neighbor {port.interface} interface peer-group {_GROUP}"
        if topology.peer[port].node in bgp.shutdown:
            yield f" neighbor {port.interface} shutdown"
    yield " !"
    yield " address-family ipv4 unicast"
    yield "  redistribute connected"
    yield f"  maximum-paths {bgp.maximum_paths}"
    if bgp.default_originate:
        yield f"  neighbor {_GROUP} default-originate"
    yield " exit-address-family"
    yield "exit"
    if bgp.bfd is not None:
        yield "!"
        yield "bfd"
        yield f" profile {_BFD_PROFILE}"
        yield f"  transmit-interval {bgp.bfd.interval_ms}"
        yield f"  receive-interval {bgp.bfd.interval_ms}"
        yield f"  detect-multiplier {bgp.bfd.multiplier}"
        yield " exit"
        yield "exit"
