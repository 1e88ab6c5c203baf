"""Reads interfaces, addresses, neighbours and routes of the calling thread's network namespace, by
rtnetlink."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from struct import Struct
from typing import Any, NamedTuple

from emu.lab.rtnl import (
    NLM_F_DUMP,
    NLM_F_REQUEST,
    NLMSG_DONE,
    NLMSG_ERROR,
    ifaddrmsg,
    ifinfmsg,
    ndmsg,
    nlmsg,
    nlmsgerr,
    rtmsg,
    rtnl,
)

_ANSWER_BYTES = 1 << 17
_HEADER = Struct("=IH")  # the first fields of struct nlmsghdr: length, type
_MAIN_TABLE = 254
_IFF_UP, _IFF_LOWER_UP = 0x1, 0x10000


@dataclass(frozen=True)
class Interface:
    """A network interface, with the kernel's counters of dropped packets."""

    name: str
    index: int
    mac: str
    mtu: int
    up: bool
    """Whether the interface is administratively up."""
    carrier: bool
    rx_dropped: int
    tx_dropped: int


class Link(NamedTuple):
    """An interface, and where its other end is."""

    name: str
    namespace: int | None
    """The kernel's number for the namespace of its other end; None: in this namespace, or there is
    no other end."""


def links() -> list[Link]:
    """All interfaces and their other ends. Raises OSError."""
    return [
        Link(message.get_attr("IFLA_IFNAME"), message.get_attr("IFLA_LINK_NETNSID"))
        for message in _dump(ifinfmsg, rtnl.RTM_GETLINK)
    ]


def interfaces() -> dict[str, Interface]:
    """All interfaces, by name. Raises OSError."""
    found = map(read_interface, _dump(ifinfmsg, rtnl.RTM_GETLINK))
    return {interface.name: interface for interface in found}


def addresses(interface: Interface) -> list[IPv4Address]:
    """The IPv4 addresses of an interface. Raises OSError."""
    return [
        IPv4Address(message.get_attr("IFA_LOCAL"))
        for message in _dump(ifaddrmsg, rtnl.RTM_GETADDR, family=socket.AF_INET)
        if message["index"] == interface.index
    ]


def neighbour_mac(interface: Interface, address: IPv4Address) -> str | None:
    """The MAC address behind a neighbour's IPv4 address, if the kernel knows it. Raises OSError."""
    for message in _dump(ndmsg, rtnl.RTM_GETNEIGH, family=socket.AF_INET):
        if message["ifindex"] == interface.index and message.get_attr("NDA_DST") == str(address):
            mac = message.get_attr("NDA_LLADDR")
            return str(mac) if mac else None
    return None


def has_default_route() -> bool:
    """Whether the main table has a route to everywhere over IPv4. Raises OSError."""
    routes = _dump(rtmsg, rtnl.RTM_GETROUTE, family=socket.AF_INET)
    return any(route["dst_len"] == 0 and route["table"] == _MAIN_TABLE for route in routes)


def drops_note(found: Iterable[Interface]) -> str:
    """A note that names the interfaces at which the kernel dropped packets; empty if none did."""
    dropped = {one.name: one.rx_dropped + one.tx_dropped for one in found}
    named = [f"{count:,} at {name}" for name, count in dropped.items() if count]
    return f"the kernel dropped packets in the lab: {', '.join(named)}" if named else ""


def read_interface(message: Any) -> Interface:
    """The interface that a message from the kernel describes."""
    counted = message.get_attr("IFLA_STATS64") or {}
    return Interface(
        name=message.get_attr("IFLA_IFNAME"),
        index=message["index"],
        mac=message.get_attr("IFLA_ADDRESS") or "",
        mtu=message.get_attr("IFLA_MTU"),
        up=bool(message["flags"] & _IFF_UP),
        carrier=bool(message["flags"] & _IFF_LOWER_UP),
        rx_dropped=counted.get("rx_dropped", 0),
        tx_dropped=counted.get("tx_dropped", 0),
    )


def _dump(message_class: type[nlmsg], kind: int, **fields: int) -> Iterator[Any]:
    """All objects of one kind that the kernel lists."""
    request = message_class()
    request["header"].update(type=kind, flags=NLM_F_REQUEST | NLM_F_DUMP)
    request.update(fields)
    request.encode()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(bytes(request.data))
        while True:
            for message in messages(kernel.recv(_ANSWER_BYTES), message_class):
                if message is None:
                    return
                yield message


def messages(data: bytes, message_class: type[nlmsg]) -> Iterator[Any]:
    """The messages in one answer; None marks the end of the dump. Raises OSError."""
    offset = 0
    while offset < len(data):
        length, kind = _HEADER.unpack_from(data, offset)
        if kind == NLMSG_DONE:
            yield None
            return
        message = (nlmsgerr if kind == NLMSG_ERROR else message_class)(data, offset=offset)
        message.decode()
        if kind == NLMSG_ERROR:
            raise OSError(-message["error"], "rtnetlink refuses to list")
        yield message
        offset += (length + 3) & ~3
