"""Reads files that a user names: only regular files, and only up to a size limit.

A device has no end, and opening a FIFO waits for a writer: reading them would hang or fill the
memory. A refusal is an OSError whose `strerror` gives the reason, like those of the system.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a FIFO or pipe",
    stat.S_IFSOCK: "a socket",
}


def open_regular(path: Path) -> BinaryIO:
    """Opens a file to read its bytes, without waiting.

    Raises OSError, or ValueError for a name with a NUL byte.
    """
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        kind = stat.S_IFMT(os.fstat(opened).st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if kind != stat.S_IFREG:
            what = _KINDS.get(kind, "no regular file")
            raise OSError(errno.EINVAL, f"is {what}; copy what it holds to a file", str(path))
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a file of at most `limit` bytes. Raises what `open_regular` raises."""
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(
            errno.EFBIG, f"is longer than {limit} bytes, the most that is read", str(path)
        )
    return content
