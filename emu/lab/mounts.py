"""Mounts that only the calling process and its children see."""

from __future__ import annotations

import os
from collections.abc import Mapping

from emu.lab.libc import LIBC, checked

_CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18


def unshare_mounts() -> None:
    """From now on the calling process, which must have one thread, has mounts of its own. Raises
    OSError."""
    checked(LIBC.unshare(_CLONE_NEWNS))
    mount(None, "/", flags=MS_REC | MS_PRIVATE)


def mount(
    source: str | None, place: str, *, kind: str = "", flags: int = 0, options: str = ""
) -> None:
    """As mount(2). Raises OSError."""
    what = None if source is None else os.fsencode(source)
    checked(LIBC.mount(what, os.fsencode(place), kind.encode(), flags, options.encode()))


def show_elsewhere(places: Mapping[str, str]) -> None:
    """Shows files and folders at other places to the calling process, which must have one thread,
    and to its children. `places`: where -> what, in the order of mounting. Raises OSError."""
    unshare_mounts()
    for place, what in places.items():
        mount(what, place, flags=MS_BIND)
