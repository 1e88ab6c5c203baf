"""Watches the kernel's links in one namespace of a lab and writes notes for its user.

The shim's end of a cable loses its carrier when a program sets the other end down, for example by
`ip link set h1-eth0 down` on a host. The emulated fabric does not notice: its own link is up, and
its routes still lead there.
"""

from __future__ import annotations

import socket
import threading

from emu.lab.net_reading import interfaces, messages, read_interface
from emu.lab.netns import entered
from emu.lab.rtnl import ifinfmsg, rtnl

_EVENT_BYTES = 1 << 16


class LinkWatch:
    """The interfaces that have lost their carrier since the watch began. Only those that had a
    carrier then are watched. One thread writes, any may read."""

    def __init__(self, pid: int) -> None:
        """Watches the namespace of a process or thread. Raises OSError."""
        with entered(pid):
            self._kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self._kernel.bind((0, rtnl.RTMGRP_LINK))
            self._watched = {name for name, own in interfaces().items() if own.carrier}
        self._carrier: dict[str, bool] = {}
        """Interface -> whether it has carrier now; only those that have lost it at least once."""
        threading.Thread(target=self._watch, name="links", daemon=True).start()

    @property
    def notes(self) -> list[str]:
        """A note for each interface whose other end was set down in the kernel."""
        return [
            f"the kernel's link of {name} {'was' if carrier else 'is'} down: a program in the lab "
            f"set it down; to lose a cable of the fabric use `emu fault set`"
            for name, carrier in dict(self._carrier).items()
        ]

    def _watch(self) -> None:
        while True:
            try:
                event = self._kernel.recv(_EVENT_BYTES)
            except OSError:  # the socket lost events; later ones report the state
                continue
            for message in messages(event, ifinfmsg):
                if message["header"]["type"] == rtnl.RTM_NEWLINK:
                    self._note(message)

    def _note(self, message: ifinfmsg) -> None:
        interface = read_interface(message)
        if interface.name not in self._watched:
            return
        if not interface.carrier or interface.name in self._carrier:
            self._carrier = {**self._carrier, interface.name: interface.carrier}
