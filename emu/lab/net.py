"""The one module that knows Mininet: hosts and switches as its nodes, cables as its links.

    The plan makes interfaces, addresses and bridges.
    Mininet knows nodes and how to run commands on them.

So our subclasses leave out what Mininet would configure itself, and its way to
raise limits of the whole machine.
"""

from __future__ import annotations

from typing import Any

from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, OVSSwitch

from topologies.graph import Port


class FabricHost(Host):
    """A host whose network is configured by the lab."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class FabricSwitch(OVSSwitch):
    """A switch whose bridge is in the lab's one transaction."""

    @classmethod
    def setup(cls) -> None:
        """Nothing to look for: the lab starts its own Open vSwitch."""

    def start(self, controllers: object) -> None:
        """Its routes are there already; there is no controller."""


class FabricInterface(Intf):
    """An interface that the lab has made and configured."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class FabricLink(Link):
    """A cable. It is in the shim; Mininet only knows its ends."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_options: Any) -> None:  # noqa: N802, Mininet's name
        """The lab makes the interfaces."""


class FabricNet(Mininet):
    """A fabric as a Mininet network."""

    def __init__(self) -> None:
        setLogLevel("output")  # what the prompt prints, and warnings
        Mininet.inited = True  # its init() would change limits of the whole machine
        super().__init__(
            host=FabricHost,
            switch=FabricSwitch,
            link=FabricLink,
            intf=FabricInterface,
            controller=None,
            build=False,
        )

    def add_host(self, name: str, ip: str) -> None:
        """A host with a shell in its own network namespace."""
        self.addHost(name, ip=ip)

    def add_switch(self, name: str, dpid: int) -> None:
        self.addSwitch(name, dpid=f"{dpid:x}")

    def add_cable(self, a: Port, b: Port) -> None:
        """Makes the cable's ends known to their nodes."""
        link = self.addLink(
            a.node, b.node, port1=a.number, port2=b.number, addr1=a.mac, addr2=b.mac
        )
        for end in (link.intf1, link.intf2):
            end.ip = end.node.params.get("ip")

    def pid(self, node: str) -> int:
        """The node's shell: a process in its namespace."""
        pid: int = self[node].pid
        return pid
