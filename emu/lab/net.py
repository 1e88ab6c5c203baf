"""A lab's fabric as a Mininet network: hosts and switches as nodes, cables as links.

    The plan makes interfaces, addresses and bridges.
    Mininet knows nodes and how to run commands on them.

These subclasses leave out Mininet's configuration of interfaces and addresses, and its change of
limits of the whole machine. A node's shell starts with its first command, because a run needs no
shells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from mininet.link import Intf, Link
from mininet.log import error, output, setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Node, OVSSwitch

from emu.errors import FabricError
from topologies.graph import Port

OnShell = Callable[[str, int], None]
"""A function that is called with a node's name and the process of its shell."""
OnCables = Callable[[str, str, bool], bool]
"""A function that sets the cables between two nodes down or up; False if there are none."""


class ShellOnDemand(Node):
    """A node in the namespaces of parameter `task`, whose shell starts with its first command.

    Parameter `on_shell` is called when it starts.
    """

    def __init__(self, name: str, **params: Any) -> None:
        self._built = False
        super().__init__(name, **params)
        self._built = True

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802, Mininet's name
        """Starts nothing yet, but sets the pid that names the node's namespaces."""
        self.pid = self.params["task"]

    def cmd(self, *args: Any, **options: Any) -> Any:
        """Runs a command. Ignores the commands by which Mininet configures a new node."""
        if not self._built:
            return ""
        self._need_shell()
        return super().cmd(*args, **options)

    def sendCmd(self, *args: Any, **options: Any) -> None:  # noqa: N802
        self._need_shell()
        super().sendCmd(*args, **options)

    def _need_shell(self) -> None:
        """Starts the shell as Mininet does, but in existing namespaces (`-a`)."""
        if not self.shell:
            super().startShell(f"-cda{self.params['task']}")
            self.params["on_shell"](self.name, self.pid)


class FabricHost(ShellOnDemand, Host):
    """A host whose network the lab configures."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class FabricSwitch(ShellOnDemand, OVSSwitch):
    """A switch whose bridge the lab's `ovs-vsctl` transaction makes."""

    @classmethod
    def setup(cls) -> None:
        """Does nothing: the lab starts its own Open vSwitch."""

    def start(self, controllers: object) -> None:
        """Does nothing: the lab loads the routes, and there is no controller."""


class FabricInterface(Intf):
    """An interface that the lab has made and configured."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class FabricLink(Link):
    """A cable. The shim emulates it; Mininet knows only its ends."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_options: Any) -> None:  # noqa: N802, Mininet's name
        """Does nothing: the lab makes the interfaces."""


class FabricNet(Mininet):
    """A fabric as a Mininet network."""

    def __init__(self, on_shell: OnShell) -> None:
        self._on_shell = on_shell
        self.on_cables: OnCables | None = None
        """Carries out `link leaf1 h1 down`. Must be set before the prompt starts."""
        setLogLevel("output")  # the prompt's output, and warnings
        Mininet.inited = True  # its init() would change limits of the whole machine
        super().__init__(
            host=FabricHost,
            switch=FabricSwitch,
            link=FabricLink,
            intf=FabricInterface,
            controller=None,
            build=False,
        )

    def add_host(self, name: str, ip: str, task: int, interface: str = "") -> None:
        """Adds a host in the namespaces of a process or thread. `interface`: its interface for IP
        if no cable is added to it."""
        # `inNamespace=False`: Mininet makes no namespace.
        host = self.addHost(name, ip=ip, task=task, inNamespace=False, on_shell=self._on_shell)
        if interface:
            FabricInterface(interface, node=host).ip = ip

    def add_switch(self, name: str, dpid: int, task: int) -> None:
        self.addSwitch(name, dpid=f"{dpid:x}", task=task, on_shell=self._on_shell)

    def add_cable(self, a: Port, b: Port) -> None:
        """Adds a link between the interfaces at a cable's ends."""
        link = self.addLink(
            a.node, b.node, port1=a.number, port2=b.number, addr1=a.mac, addr2=b.mac
        )
        for end in (link.intf1, link.intf2):
            end.ip = end.node.params.get("ip")

    def start(self) -> None:
        """Does nothing: the lab has started. Mininet's command calls it."""

    def stop(self) -> None:
        """Does nothing: the lab ends with its first process."""

    def iperf(
        self,
        hosts: Sequence[FabricHost] | None = None,
        l4Type: str = "TCP",  # noqa: N803, Mininet's names
        udpBw: str = "10M",  # noqa: N803
        fmt: str | None = None,
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Mininet's `iperf`, by iperf3, because Mininet's own hangs with iperf 2.1.

        Returns the rates that server and client measured, in Mbit/s of wall-clock time.
        """
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        server.sendCmd(f"iperf3 --server --one-off --forceflush --port {port}")
        printed = ""
        while "listening" not in printed:
            printed += server.monitor()
        udp = f"--udp --bandwidth {udpBw}" if l4Type == "UDP" else ""
        address = f"--client {server.IP()} --port {port} --time {seconds}"
        measured = json.loads(client.cmd(f"iperf3 --json {address} {udp}"))
        server.waitOutput()
        if "error" in measured:
            raise FabricError(f"iperf3: {measured['error']}")
        ends = [measured["end"][side]["bits_per_second"] for side in ("sum_received", "sum_sent")]
        speeds = [f"{bps / 1e6:.3g} Mbits/sec" for bps in ends]
        output(f"*** Results: {speeds}\n")
        return speeds

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:  # noqa: N802, Mininet's
        """Takes the cables between two nodes down, or up again, in the fabric.

        Mininet need not know the nodes: without Open vSwitch it knows only hosts.
        """
        assert self.on_cables is not None
        if not self.on_cables(src, dst, status == "up"):
            error(f"no cable joins {src} and {dst}\n")
