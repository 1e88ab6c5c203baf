"""The one module that knows Mininet: hosts and switches as its nodes, cables as its links.

    The plan makes interfaces, addresses and bridges.
    Mininet knows nodes and how to run commands on them.

So our subclasses leave out what Mininet would configure itself, and its way to
raise limits of the whole machine. A node's shell starts with its first command:
a run needs none of them.
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
"""Told of a node's shell: the node and the process."""
OnCables = Callable[[str, str, bool], bool]
"""Told that the cables between two nodes are to go down or come up; whether there are any."""


class ShellOnDemand(Node):
    """A node in the namespaces of parameter `task`, whose shell starts with its first command.

    Parameter `on_shell` is told of the shell.
    """

    def __init__(self, name: str, **params: Any) -> None:
        self._built = False
        super().__init__(name, **params)
        self._built = True

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802, Mininet's name
        """Not yet; programs need to know where they are to run, though."""
        self.pid = self.params["task"]

    def cmd(self, *args: Any, **options: Any) -> Any:
        """Commands to configure it, while it is being built, are the lab's business."""
        if not self._built:
            return ""
        self._need_shell()
        return super().cmd(*args, **options)

    def sendCmd(self, *args: Any, **options: Any) -> None:  # noqa: N802
        self._need_shell()
        super().sendCmd(*args, **options)

    def _need_shell(self) -> None:
        """Starts the shell as Mininet does, but in namespaces that are there already (`-a`)."""
        if not self.shell:
            super().startShell(f"-cda{self.params['task']}")
            self.params["on_shell"](self.name, self.pid)


class FabricHost(ShellOnDemand, Host):
    """A host whose network is configured by the lab."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class FabricSwitch(ShellOnDemand, OVSSwitch):
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

    def __init__(self, on_shell: OnShell) -> None:
        self._on_shell = on_shell
        self.on_cables: OnCables | None = None
        """Who takes cables down for `link leaf1 h1 down`; somebody must, before that is typed."""
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

    def add_host(self, name: str, ip: str, task: int, interface: str = "") -> None:
        """A host in the namespaces of a process or thread; its interface, if it gets no cable."""
        # `inNamespace`: whether Mininet makes a namespace for it.
        host = self.addHost(name, ip=ip, task=task, inNamespace=False, on_shell=self._on_shell)
        if interface:
            FabricInterface(interface, node=host).ip = ip

    def add_switch(self, name: str, dpid: int, task: int) -> None:
        self.addSwitch(name, dpid=f"{dpid:x}", task=task, on_shell=self._on_shell)

    def add_cable(self, a: Port, b: Port) -> None:
        """Makes the cable's ends known to their nodes."""
        link = self.addLink(
            a.node, b.node, port1=a.number, port2=b.number, addr1=a.mac, addr2=b.mac
        )
        for end in (link.intf1, link.intf2):
            end.ip = end.node.params.get("ip")

    def start(self) -> None:
        """Mininet's command says so; the lab has started long ago."""

    def stop(self) -> None:
        """It ends with its first process."""

    def iperf(
        self,
        hosts: Sequence[FabricHost] | None = None,
        l4Type: str = "TCP",  # noqa: N803, Mininet's names
        udpBw: str = "10M",  # noqa: N803
        fmt: str | None = None,
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Mininet's `iperf`, by iperf3: its own waits for ever for the server of iperf 2.1.

        The speeds that the server and the client saw, in Mbit/s of wall-clock time.
        """
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        server.sendCmd(f"iperf3 --server --one-off --forceflush --port {port}")
        said = ""
        while "listening" not in said:
            said += server.monitor()
        udp = f"--udp --bandwidth {udpBw}" if l4Type == "UDP" else ""
        address = f"--client {server.IP()} --port {port} --time {seconds}"
        told = json.loads(client.cmd(f"iperf3 --json {address} {udp}"))
        server.waitOutput()
        if "error" in told:
            raise FabricError(f"iperf3: {told['error']}")
        ends = [told["end"][side]["bits_per_second"] for side in ("sum_received", "sum_sent")]
        speeds = [f"{bps / 1e6:.3g} Mbits/sec" for bps in ends]
        output(f"*** Results: {speeds}\n")
        return speeds

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:  # noqa: N802, Mininet's
        """Takes the cables between two nodes down or up again, in the fabric.

        Mininet need not know them: without Open vSwitch it knows hosts alone.
        """
        assert self.on_cables is not None
        if not self.on_cables(src, dst, status == "up"):
            error(f"no cable joins {src} and {dst}\n")
