"""An emulated NIC on a network interface of this machine, with an external RoCEv2 NIC as its peer.

    program ── verbs ──▶ NIC ══ interface ═══════ any RoCEv2 device
                               kernel: ARP, TCP

There is no emulated fabric between them: the peer gets the frames unchanged. The NIC has the
interface's own IPv4 and MAC addresses. It works beside the kernel, which must not answer RoCEv2's
UDP port with ICMP errors. The NIC's clock runs `slowdown` times slower than real time, so that its
timers are longer than the peer's by that factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Literal

from emu._core import lib
from emu.bindings.fabric import Fabric, NodeSubset
from emu.bindings.packet_socket import packet_socket
from emu.errors import UsageError
from emu.lab.net_reading import Interface, addresses, interfaces, neighbour_mac
from emu.lab.udp_port_guard import hold_udp_port
from emu.rdma.context import Context
from emu.rdma.own_lab import HostSockets
from emu.rdma.real_clock import RealClock
from emu.spec.host import HostDefaults
from emu.spec.scenario import Spec
from emu.spec.topology import Kind
from topologies.graph import HOST_NETWORK, Cable, Host, Port, Switch, Topology

_HOST, _FAR = "here", "there"
_RATE_BPS = 100_000_000_000
_PATIENCE_PS = 10 * 10**12
_MTUS = (256, 512, 1024, 2048, 4096)
_LARGEST_HEADERS = 80
"""The most bytes that a packet needs beside its payload, as in Linux' soft RoCE."""


@dataclass(frozen=True)
class _Interface:
    kernel: Interface
    address: IPv4Address


@contextmanager
def nic_on(interface: str, far: str, *, slowdown: float) -> Iterator[Context]:
    """A NIC that reaches the IPv4 address `far`, which must be in the kernel's neighbour table.

    Raises UsageError for an interface that does not exist or has no address.
    """
    own = _look_up(interface)
    spec = _spec(own, _far_mac(own.kernel, far), slowdown)
    topology = spec.topology.build()
    with ExitStack() as stack:
        stack.enter_context(hold_udp_port(lib.ROCE_UDP_PORT))
        fabric = stack.enter_context(Fabric(spec, topology, NodeSubset.HOSTS, subnet=None))
        wire = packet_socket(interface), own.kernel.index
        clock = RealClock(fabric, slowdown, HostSockets({_HOST: wire}, None))
        context = Context(clock, topology.hosts[0], None, leads_outside=True)
        stack.callback(context.close)
        fabric.connect()
        stack.callback(clock.close)
        clock.start()
        yield context


def _look_up(name: str) -> _Interface:
    found = interfaces().get(name)
    of_interface = addresses(found) if found else []
    if not found or not of_interface:
        what = "has no IPv4 address" if found else "does not exist"
        raise UsageError(f"the interface {name} {what}; see `ip address`")
    return _Interface(found, of_interface[0])


def _far_mac(interface: Interface, far: str) -> str:
    mac = neighbour_mac(interface, IPv4Address(far))
    if mac is None:
        raise UsageError(
            f"{far} is no neighbour on {interface.name}: ping it first; it must be in the same "
            "network"
        )
    return mac


class _Cable(Kind):
    """A topology of one host and its cable. The other end takes the place of a switch."""

    kind: Literal["outside"] = "outside"
    own: _Interface
    far_mac: str

    @property
    def host_count(self) -> int:
        return 1

    @property
    def most_ports(self) -> int:
        return 1

    def lay_out(self) -> Topology:
        host = Host(_HOST, int(self.own.address) - HOST_NETWORK)
        ends = Port(_HOST, 0, self.own.kernel.mac), Port(_FAR, 1, self.far_mac)
        return Topology((host,), (Switch(_FAR, 1, _FAR),), (Cable(*ends, _RATE_BPS, 0),))


def _spec(own: _Interface, far_mac: str, slowdown: float) -> Spec:
    """A spec made in code, because no file can have such a topology."""
    mtu = max(mtu for mtu in _MTUS if mtu + _LARGEST_HEADERS <= own.kernel.mtu)
    return Spec.model_construct(
        name=own.kernel.name,
        slowdown=slowdown,
        time_limit_ps=_PATIENCE_PS,
        topology=_Cable(own=own, far_mac=far_mac),
        hosts=HostDefaults.model_validate({"nic": {"mtu": mtu, "cc": "none"}}),
    )
