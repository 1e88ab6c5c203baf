"""Watches the default routes of a lab's hosts and writes notes for its user.

The IP traffic of a host leaves by its default route. The kernel removes the route when a program
sets the interface down, and does not add it again when the interface comes back. RDMA goes on,
since the NICs need no route of the kernel.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector

from emu.lab.net_reading import has_default_route
from emu.lab.netns import entered
from emu.lab.rtnl import rtnl

_EVENT_BYTES = 1 << 16


class RouteWatch:
    """The hosts that have lost their default route since the watch began. Only those that had one
    then are watched. One thread writes, any may read."""

    def __init__(self, hosts: Mapping[str, int]) -> None:
        """Watches the namespaces of hosts: name -> a process or thread in it. Raises OSError."""
        self._pids = hosts
        self._missing: dict[str, bool] = {}
        """Host -> whether its route is missing now; only those that have lost it at least once."""
        self._events = DefaultSelector()
        for host, pid in hosts.items():
            with entered(pid):
                if not has_default_route():
                    continue
                kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
                kernel.bind((0, rtnl.RTMGRP_LINK | rtnl.RTMGRP_IPV4_ROUTE))
                self._events.register(kernel, EVENT_READ, host)
        threading.Thread(target=self._watch, name="routes", daemon=True).start()

    @property
    def notes(self) -> list[str]:
        """A note for each host whose default route was removed."""
        return [
            f"the default route of {host} {'is' if missing else 'was'} missing: a program in the "
            "lab removed it, or set its interface down; without it the host's IP traffic reaches "
            "no other host (RDMA does)"
            for host, missing in dict(self._missing).items()
        ]

    def _watch(self) -> None:
        while True:
            for key, _ in self._events.select():
                with suppress(OSError):  # the socket lost events: all the more it must look
                    key.fileobj.recv(_EVENT_BYTES)  # type: ignore[union-attr]
                with suppress(OSError):  # the host's namespace ends with the lab
                    self._look(key.data)

    def _look(self, host: str) -> None:
        """Reads the routes again: the kernel sends no event for those that go with a link."""
        with entered(self._pids[host]):
            missing = not has_default_route()
        if missing or host in self._missing:
            self._missing = {**self._missing, host: missing}
