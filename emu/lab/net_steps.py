"""The steps of a plan that configure the kernel's network: `netlink` carries them out.

A step names the namespace it happens in by the process that lives there, as the plan does.
Each is one request to the kernel, and its text says what that request does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AddVeth:
    """A pair of joined interfaces with the same name, the other one in the namespace `peer`."""

    namespace: str
    interface: str
    peer: str
    mtu: int
    mac: str = ""
    """Of the end in `namespace`; the kernel chooses one where this is empty."""

    def __str__(self) -> str:
        address = f" address {self.mac}" if self.mac else ""
        return f"add veth {self.interface}{address} mtu {self.mtu} peer in {self.peer}"


@dataclass(frozen=True)
class AddTun:
    """A TUN device, which outlives the descriptor it is made with."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"add tun {self.interface}"


@dataclass(frozen=True)
class SetQueue:
    """The largest packet of an interface, and how many packets wait for it in the kernel."""

    namespace: str
    interface: str
    mtu: int
    packets: int

    def __str__(self) -> str:
        return f"set {self.interface} mtu {self.mtu} queue {self.packets} packets"


@dataclass(frozen=True)
class SetUp:
    """The interface is administratively up."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"set {self.interface} up"


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
class AddNeighbour:
    """The MAC address of an IPv4 neighbour, which the kernel never asks for."""

    namespace: str
    interface: str
    address: str
    mac: str

    def __str__(self) -> str:
        return f"add neighbour {self.address} at {self.mac} on {self.interface}"


@dataclass(frozen=True)
class AddDefaultRoute:
    """All packets go to this gateway, which need not be in a network of the interface."""

    namespace: str
    interface: str
    gateway: str

    def __str__(self) -> str:
        return f"add default route via {self.gateway} on {self.interface}"


@dataclass(frozen=True)
class AttachClsact:
    """The qdisc that holds an interface's filters."""

    namespace: str
    interface: str

    def __str__(self) -> str:
        return f"add qdisc clsact to {self.interface}"


@dataclass(frozen=True)
class AttachEgressFilter:
    """A loaded eBPF program that sees and may change all packets that leave an interface."""

    namespace: str
    interface: str
    program: str
    fd: int
    """Of the program."""

    def __str__(self) -> str:
        return f"add egress filter {self.program} to {self.interface}"


NetStep = (
    AddVeth
    | AddTun
    | SetQueue
    | SetUp
    | AddAddress
    | AddNeighbour
    | AddDefaultRoute
    | AttachClsact
    | AttachEgressFilter
)
