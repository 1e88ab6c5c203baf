"""The NIC's files in the sysfs of hosts: written when a program asks, and kept up to date.

A client that starts programs on hosts gets an open file, which its programs inherit. While any of
them has it, a thread updates the files of those hosts. So a lab without such programs does no work.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from emu.daemon.rdma_nics import RdmaNics
from emu.lab.rdma_sysfs.nic import LIFESPAN_MS
from emu.lab.rdma_sysfs.place import tree_of
from emu.lab.rdma_sysfs.tree import SysfsTree


class RdmaSysfs:
    """The trees of a lab's hosts. Any thread may call it."""

    def __init__(self, nics: RdmaNics) -> None:
        self._nics = nics
        self._changing = threading.Lock()
        self._trees: dict[str, SysfsTree] = {}
        self._users: dict[int, Sequence[str]] = {}
        """The lab's end of each client's open file -> the hosts that it asked for."""

    def keep(self, hosts: Sequence[str]) -> int:
        """Brings the files of hosts up to date, and keeps them so.

        Returns an open file: the hosts are up to date until it and all copies of it are closed.
        Raises OSError.
        """
        with self._changing:
            for host in hosts:
                self._refresh(host)
            ours, theirs = os.pipe()
            self._users[ours] = tuple(hosts)
            if len(self._users) == 1:
                threading.Thread(target=self._keep, name="sysfs", daemon=True).start()
        return theirs

    def _refresh(self, host: str) -> None:
        state = self._nics.state(host)
        if host in self._trees:
            self._trees[host].update(state)
        else:
            self._trees[host] = SysfsTree(tree_of(host), self._nics.nic(host), state)

    def _keep(self) -> None:
        """Updates the files until no client is left."""
        while True:
            time.sleep(LIFESPAN_MS / 1000)
            with self._changing:
                self._forget_gone()
                if not self._users:
                    return
                with suppress(OSError):  # a full /run: the next round may find room
                    for host in {host for hosts in self._users.values() for host in hosts}:
                        self._refresh(host)

    def _forget_gone(self) -> None:
        """Forgets the clients whose open files are all closed."""
        poll = select.poll()
        for ours in self._users:
            poll.register(ours, 0)  # reports only that the other end is closed
        for ours, _ in poll.poll(0):
            del self._users[ours]
            os.close(ours)
