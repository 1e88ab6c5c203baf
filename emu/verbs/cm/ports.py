"""The ports of a host, in each port space: which are in use, and who listens there."""

from __future__ import annotations

import errno
from typing import Generic, TypeVar

from emu.verbs.cm.ip_service import PortSpace
from emu.verbs.objects import Refused

Owner = TypeVar("Owner")

_EPHEMERAL = range(32768, 61000)
"""As Linux has it by default (net.ipv4.ip_local_port_range)."""


class Ports(Generic[Owner]):
    """Owners are whatever the caller likes."""

    def __init__(self) -> None:
        self._owners: dict[tuple[PortSpace, int], dict[Owner, bool]] = {}
        """Owner -> whether it shares the port (RDMA_OPTION_ID_REUSEADDR)."""
        self._listeners: dict[tuple[PortSpace, int], Owner] = {}
        self._next = _EPHEMERAL.start

    def take(self, owner: Owner, space: PortSpace, port: int, *, shares: bool = False) -> int:
        """Gives the owner this port, or a free one for port 0. Raises Refused (EADDRINUSE)."""
        port = port or self._free(space)
        owners = self._owners.setdefault((space, port), {})
        listened = (space, port) in self._listeners
        if owners and (listened or not shares or not all(owners.values())):
            raise Refused(errno.EADDRINUSE, f"port {port} is in use on this host")
        owners[owner] = shares
        return port

    def release(self, owner: Owner, space: PortSpace, port: int) -> None:
        """The owner has ended."""
        owners = self._owners.get((space, port), {})
        owners.pop(owner, None)
        if not owners:
            self._owners.pop((space, port), None)
        if self._listeners.get((space, port)) is owner:
            del self._listeners[space, port]

    def listen(self, owner: Owner, space: PortSpace, port: int) -> None:
        """The owner of the port gets its requests. Raises Refused (EADDRINUSE)."""
        if len(self._owners[space, port]) > 1 or (space, port) in self._listeners:
            raise Refused(errno.EADDRINUSE, f"others use port {port}, so nobody can listen there")
        self._listeners[space, port] = owner

    def listener(self, space: PortSpace, port: int) -> Owner | None:
        """Who listens there."""
        return self._listeners.get((space, port))

    def _free(self, space: PortSpace) -> int:
        """The next free port, so that one that was used comes again late."""
        for _ in _EPHEMERAL:
            port = self._next
            self._next = port + 1 if port + 1 in _EPHEMERAL else _EPHEMERAL.start
            if (space, port) not in self._owners:
                return port
        raise Refused(errno.EADDRNOTAVAIL, "all ports of this host are in use")
