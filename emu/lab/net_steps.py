"""The steps of a plan that configure the kernel's network; `netlink` carries them out.

A step names its namespace as the plan does. Each step is one request to the kernel; its text
describes the request.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AddVeth:
    """A pair of joined interfaces, one in `namespace` and one in `peer`."""

    namespace: str
    interface: str
    peer: str
    mtu: int
    mac: str = ""
    """The address of the end in `namespace`; empty: the kernel chooses one."""
    index: int = 0
    """The interface index of that end; 0: the kernel chooses one."""
    peer_interface: str = ""
    """The name of the end in `peer`; empty: the same name."""

    def __str__(self) -> str:
        address = f" address {self.mac}" if self.mac else ""
        peer = f"peer {self.peer_interface} in" if self.peer_interface else "peer in"
        return f"add veth {self.interface}{address} mtu {self.mtu} {peer} {self.peer}"


@dataclass(frozen=True)
class AddBridge:
    """A bridge of the kernel."""

    namespace: str
    interface: str
    snooping: bool = True
    """Whether it follows multicast groups; for that it sends IGMP reports of its own."""

    def __str__(self) -> str:
        return f"add bridge {self.interface}{'' if self.snooping else ' mcast_snooping off'}"


@dataclass(frozen=True)
class SetBridge:
    """Makes an interface a port of a bridge."""

    namespace: str
    interface: str
    bridge: str

    def __str__(self) -> str:
        return f"set {self.interface} master {self.bridge}"


@dataclass(frozen=True)
class ClearBridge:
    """Takes an interface out of its bridge."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"set {self.interface} nomaster"


@dataclass(frozen=True)
class IsolatePort:
    """No frame passes between this port of a bridge and another isolated one."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"set {self.interface} isolated on"


@dataclass(frozen=True)
class AddTun:
    """A TUN device that stays when its descriptor is closed."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"add tun {self.interface}"


@dataclass(frozen=True)
class SetQueue:
    """An interface's MTU, and the length of its queue in the kernel in packets."""

    namespace: str
    interface: str
    mtu: int
    packets: int

    def __str__(self) -> str:
        return f"set {self.interface} mtu {self.mtu} queue {self.packets} packets"


@dataclass(frozen=True)
class SetUp:
    """Sets an interface administratively up."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"set {self.interface} up"


@dataclass(frozen=True)
class SetDown:
    """Sets an interface administratively down; the other end of a veth pair loses its carrier."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"set {self.interface} down"


@dataclass(frozen=True)
class AddAddress:
    """An IPv4 address of an interface, with its network's prefix length."""

    namespace: str
    interface: str
    address: str
    prefix: int

    def __str__(self) -> str:
        return f"add address {self.address}/{self.prefix} to {self.interface}"


@dataclass(frozen=True)
class AddPeerAddress:
    """An IPv4 address of a point-to-point interface, and that of its other end."""

    namespace: str
    interface: str
    address: str
    peer: str

    def __str__(self) -> str:
        return f"add address {self.address} peer {self.peer} to {self.interface}"


@dataclass(frozen=True)
class AddNeighbour:
    """A static neighbour: the kernel sends no ARP requests for it."""

    namespace: str
    interface: str
    address: str
    mac: str

    def __str__(self) -> str:
        return f"add neighbour {self.address} at {self.mac} on {self.interface}"


@dataclass(frozen=True)
class AddDefaultRoute:
    """A default route; its gateway need not be in a network of the interface."""

    namespace: str
    interface: str
    gateway: str
    quick_ack: bool = False
    """TCP acknowledges every segment at once (`quickack` of ip-route(8))."""

    def __str__(self) -> str:
        quick_ack = " quickack 1" if self.quick_ack else ""
        return f"add default route via {self.gateway} on {self.interface}{quick_ack}"


@dataclass(frozen=True)
class AttachClsact:
    """The clsact qdisc, which holds an interface's filters."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"add qdisc clsact to {self.interface}"


@dataclass(frozen=True)
class AttachEgressFilter:
    """A loaded eBPF program that may change every packet that leaves an interface."""

    namespace: str
    interface: str
    program: str
    fd: int
    """The program's descriptor."""

    def __str__(self) -> str:
        return f"add egress filter {self.program} to {self.interface}"


NetStep = (
    AddVeth
    | AddBridge
    | SetBridge
    | ClearBridge
    | IsolatePort
    | AddTun
    | SetQueue
    | SetUp
    | SetDown
    | AddAddress
    | AddPeerAddress
    | AddNeighbour
    | AddDefaultRoute
    | AttachClsact
    | AttachEgressFilter
)
