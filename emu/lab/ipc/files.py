"""Open files that come with a message on a local socket. Programs that this process starts do not
inherit them."""

from __future__ import annotations

import socket
from array import array


def receive(line: socket.socket, most_bytes: int, most_files: int) -> tuple[bytes, list[int], int]:
    """As `socket.recv_fds`, which takes no flags in Python 3.11: the message, its files, which the
    caller closes, and flags."""
    room = socket.CMSG_SPACE(most_files * array("i").itemsize)
    data, control, flags, _ = line.recvmsg(most_bytes, room, socket.MSG_CMSG_CLOEXEC)
    files = array("i")
    for level, kind, content in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(content[: len(content) // files.itemsize * files.itemsize])
    return data, files.tolist(), flags
