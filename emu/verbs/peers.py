"""Who is at the other end of a local socket."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

HostOf = Callable[[socket.socket], str]
"""The host of a connected program. Raises OSError if the program has gone, KeyError if it is on no
host."""
_CREDENTIALS = struct.Struct("3i")


def pid_of(line: socket.socket) -> int:
    """The process that has connected."""
    pid: int
    pid, _, _ = _CREDENTIALS.unpack(
        line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return pid


def by_network(tasks: Mapping[str, int]) -> HostOf:
    """A program is on the host in whose network namespace it is. `tasks`: a process in that of each
    host."""
    host_of = {_network_of(task): host for host, task in tasks.items()}
    return lambda line: host_of[_network_of(pid_of(line))]


def _network_of(pid: int) -> int:
    """The inode of a process's network namespace."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino
