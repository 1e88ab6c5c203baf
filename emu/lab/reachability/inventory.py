"""Which interfaces join the fabric's namespaces with those of the management network: none may.

The kernel names the other end of a veth pair by its index and by a number for its namespace
(IFLA_LINK, IFLA_LINK_NETNSID), which differs from namespace to namespace. So each namespace is
asked for its number of every other one.

Source: Linux, linux/if_link.h, linux/net_namespace.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from emu.lab.net_reading import links
from emu.lab.netns import inside, opened
from emu.lab.reachability.places import MANAGEMENT, Place
from emu.spec.management_names import SWITCH

_RTM_NEWNSID, _RTM_GETNSID = 88, 90
_NLM_F_REQUEST = 1
_NETNSA_NSID, _NETNSA_FD = 1, 3
_HEAD = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HHi")
_FAMILY_BYTES = 4
"""struct rtgenmsg, with its padding."""
_MOST_BYTES = 8192
_HUBS = ("cables", "switches", SWITCH)
"""The places that most interfaces lead to."""


def joints(places: Sequence[Place]) -> list[str]:
    """The interfaces that join places of both networks, in words."""
    found = []
    with opened({place.name: place.task for place in places}) as namespaces:
        planes = {place.name: place.plane for place in places}
        hubs = sorted(namespaces, key=_HUBS.__contains__, reverse=True)
        ordered = {name: namespaces[name] for name in hubs}
        for name, namespace in namespaces.items():
            with inside(namespace):
                found += _joints_of(name, planes, ordered)
    return found


def _joints_of(name: str, planes: dict[str, str], namespaces: dict[str, int]) -> list[str]:
    far_ends = {link.name: link.namespace for link in links() if link.namespace is not None}
    if not far_ends:
        return []
    numbers = _resolved(set(far_ends.values()), namespaces)
    found = []
    for interface, number in far_ends.items():
        other = numbers.get(number)
        if other is None:
            if planes[name] == MANAGEMENT:
                found.append(f"{interface} of {name} leads out of the lab's own namespaces")
        elif planes[other] != planes[name]:
            found.append(
                f"{interface} of {name} ({planes[name]}) is joined to {other} ({planes[other]})"
            )
    return found


def _resolved(numbers: set[int], namespaces: dict[str, int]) -> dict[int, str]:
    """The names of the namespaces that have these numbers in the calling thread's namespace."""
    names: dict[int, str] = {}
    for name, file in namespaces.items():
        if numbers <= names.keys():
            break
        names[_number_of(file)] = name
    return names


def _number_of(namespace: int) -> int:
    """The number that the calling thread's namespace has for another one; -1: none."""
    body = bytes(_FAMILY_BYTES) + _ATTRIBUTE.pack(_ATTRIBUTE.size, _NETNSA_FD, namespace)
    head = _HEAD.pack(_HEAD.size + len(body), _RTM_GETNSID, _NLM_F_REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(head + body)
        answer = kernel.recv(_MOST_BYTES)
    _, kind, _, _, _ = _HEAD.unpack_from(answer)
    offset = _HEAD.size + _FAMILY_BYTES
    if kind != _RTM_NEWNSID or len(answer) < offset + _ATTRIBUTE.size:
        return -1
    _, attribute, number = _ATTRIBUTE.unpack_from(answer, offset)
    return int(number) if attribute == _NETNSA_NSID else -1
