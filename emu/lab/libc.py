"""System calls that Python has no function for, by the C library."""

from __future__ import annotations

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """What a call has returned. Raises OSError where that is less than 0."""
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result
