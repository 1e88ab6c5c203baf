"""The routes that FRR gives the kernel, read by netlink from each switch's namespace.

The kernel sends a message for each change of a route: the whole route, never a difference. When a
port loses its carrier it drops the routes over that port without a message, so the port's own
message counts for them.

Sources: rtnetlink(7); Linux, net/ipv4/fib_semantics.c (fib_sync_down_dev).
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from selectors import EVENT_READ, DefaultSelector

from emu.errors import FabricError
from emu.lab.netns import entered
from emu.lab.rtnl import ifinfmsg, nlmsg, rtmsg, rtnl
from emu.spec.route_recording import Fib, Ports, RouteChange

_MESSAGE_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 23
_LENGTH_AND_TYPE = struct.Struct("=IH")
_ALIGNED = 4
_IFF_LOWER_UP = 0x10000
_BY_KERNEL = 2
"""The protocol of routes to connected addresses: linux/rtnetlink.h, RTPROT_KERNEL."""
_TABLE_MAIN = 254

OnChange = Callable[[RouteChange], None]
"""A function that gets each change. Its time is that of time.monotonic_ns."""


class SwitchFib:
    """The routes of one switch, kept up to date by the kernel's messages."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        """`numbers`: the index of each interface -> the number of its port."""
        self._numbers = numbers
        self.told: Fib = {}
        """The routes as FRR has given them to the kernel."""
        self.used: Fib = {}
        """The same without the ports that have no carrier."""

    def take(self, data: bytes) -> tuple[Fib, Fib]:
        """Takes the messages of one read. Returns what differs in `told`, and what the kernel has
        changed by itself."""
        told, used = dict(self.told), dict(self.used)
        for kind, content in _messages(data):
            if kind in (rtnl.RTM_NEWROUTE, rtnl.RTM_DELROUTE):
                self._take_route(_decoded(rtmsg, content))
            elif kind == rtnl.RTM_NEWLINK:
                self._take_link(_decoded(ifinfmsg, content))
        by_frr = _difference(told, self.told)
        by_kernel = _difference(used, self.used)
        return by_frr, {prefix: by_kernel[prefix] for prefix in by_kernel.keys() - by_frr.keys()}

    def _take_route(self, route: nlmsg) -> None:
        if route["family"] != socket.AF_INET or route["table"] != _TABLE_MAIN:
            return
        if route["proto"] == _BY_KERNEL:  # of a connected address
            return
        address = route.get_attr("RTA_DST") or "0.0.0.0"
        prefix = f"{address}/{route['dst_len']}"
        ports = self._ports(route) if route["header"]["type"] == rtnl.RTM_NEWROUTE else ()
        for fib in (self.told, self.used):
            fib[prefix] = ports

    def _ports(self, route: nlmsg) -> Ports:
        hops = route.get_attr("RTA_MULTIPATH")
        if hops is None:
            index = route.get_attr("RTA_OIF")
            return (self._numbers[index],) if index in self._numbers else ()
        return tuple(
            sorted(
                number
                for hop in hops
                for number in [self._numbers.get(hop["oif"])] * (hop["hops"] + 1)
                if number is not None
            )
        )

    def _take_link(self, link: nlmsg) -> None:
        """A port without carrier takes its hops out of all routes."""
        number = self._numbers.get(link["index"])
        if number is None or link["flags"] & _IFF_LOWER_UP:
            return
        self.used = {
            prefix: tuple(port for port in ports if port != number)
            for prefix, ports in self.used.items()
        }


class FibWatch:
    """Watches the routes of all switches on a thread, until the process ends."""

    def __init__(self, namespaces: Mapping[str, int], on_change: OnChange) -> None:
        """`namespaces`: a process or thread in each switch's namespace, whose interfaces are named
        as the topology's ports. `on_change` is called on the thread. Raises OSError."""
        self._on_change = on_change
        self.fibs: dict[str, SwitchFib] = {}
        self.last_change_ns = time.monotonic_ns()
        self._events = DefaultSelector()
        for switch, thread in namespaces.items():
            with entered(thread):
                self.fibs[switch] = SwitchFib(
                    {
                        index: int(name.rpartition("-eth")[2])
                        for index, name in socket.if_nameindex()
                        if name.startswith(f"{switch}-eth")
                    }
                )
                kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
                kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
                kernel.bind((0, rtnl.RTMGRP_LINK | rtnl.RTMGRP_IPV4_ROUTE))
            self._events.register(kernel, EVENT_READ, switch)
        self.failure: OSError | None = None
        threading.Thread(target=self._watch, name="routes", daemon=True).start()

    def refuse_loss(self) -> None:
        """Raises FabricError if messages were lost."""
        if self.failure is not None:
            raise FabricError(f"messages about routes were lost: {self.failure.strerror}")

    def _watch(self) -> None:
        try:
            while True:
                for key, _ in self._events.select():
                    data = key.fileobj.recv(_MESSAGE_BYTES)  # type: ignore[union-attr]
                    self._take(key.data, data, time.monotonic_ns())
        except OSError as error:
            self.failure = error

    def _take(self, switch: str, data: bytes, now_ns: int) -> None:
        for fib, by_kernel in zip(self.fibs[switch].take(data), (False, True), strict=True):
            if fib:
                self.last_change_ns = now_ns
                self._on_change(RouteChange(now_ns, switch, fib, by_kernel))


def _difference(before: Fib, after: Fib) -> Fib:
    """The routes of `after` that are not so in `before`; each has all prefixes of `before`."""
    return {prefix: ports for prefix, ports in after.items() if before.get(prefix, ()) != ports}


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The type and the bytes of each message of a read."""
    offset = 0
    while offset < len(data):
        length, kind = _LENGTH_AND_TYPE.unpack_from(data, offset)
        yield kind, data[offset : offset + length]
        offset += (length + _ALIGNED - 1) // _ALIGNED * _ALIGNED


def _decoded(kind: type[nlmsg], content: bytes) -> nlmsg:
    message = kind(content)
    message.decode()
    return message
