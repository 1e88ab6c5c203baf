"""Whose a file is, where other users may have put one in wait.

In the user namespace of an ordinary user's lab the files of all who are not mapped there, root's
too, look as if one and the same user had them (user_namespaces(7)). What nobody but root can have
put in its place is taken for root's there: from `/` down to its folder every folder belongs to
such a user, and neither a group nor others may write into it. A folder that root has given to
somebody cannot be told from root's own.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_UID_MAP = Path("/proc/self/uid_map")
_OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")
_ROOT = 0
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def may_be_foreign(uid: int, folder: int) -> bool:
    """Whether what `uid` has in an open folder may be neither the user's own nor root's."""
    if uid in (_ROOT, os.geteuid()):
        return False
    return uid != _uid_of_roots_files() or not _only_root_or_we_write(folder, uid)


def _uid_of_roots_files() -> int:
    """As they look here: whose `/` is, if nobody in this user namespace has that number."""
    uid = Path("/").stat().st_uid
    is_unmapped = uid == int(_OVERFLOW_UID.read_text()) and not _is_mapped(uid)
    return uid if is_unmapped else _ROOT


def _is_mapped(uid: int) -> bool:
    ranges = (map(int, line.split()) for line in _UID_MAP.read_text().splitlines())
    return any(first <= uid < first + count for first, _, count in ranges)


def _only_root_or_we_write(folder: int, uid_of_root: int) -> bool:
    """Goes up until a folder is ours, which nobody else can have put something into."""
    here = os.dup(folder)
    try:
        while True:
            found = os.fstat(here)
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return False
            if found.st_uid == os.geteuid():
                return True
            if found.st_uid != uid_of_root:
                return False
            below, here = here, os.open("..", _FOLDER, dir_fd=here)
            os.close(below)
            if os.path.samestat(found, os.fstat(here)):
                return True
    finally:
        os.close(here)
