"""Who owns a file, in folders where other users may have placed one as a trap.

In the user namespace of an ordinary user's lab, all users that are not mapped there, root among
them, appear as one owner (user_namespaces(7)). There a file counts as root's if only root can
have put it in its place: every folder from `/` down to it belongs to that owner, and neither
group nor others may write to any of them. A folder that root has given to another user cannot be
distinguished from root's own.
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
    """Whether a file of `uid` in an open folder may belong to neither this user nor root."""
    if uid in (_ROOT, os.geteuid()):
        return False
    return uid != _uid_of_roots_files() or not _only_root_or_we_write(folder, uid)


def _uid_of_roots_files() -> int:
    """The owner that root's files appear to have: that of `/`, if it is no user mapped here."""
    uid = Path("/").stat().st_uid
    is_unmapped = uid == int(_OVERFLOW_UID.read_text()) and not _is_mapped(uid)
    return uid if is_unmapped else _ROOT


def _is_mapped(uid: int) -> bool:
    ranges = (map(int, line.split()) for line in _UID_MAP.read_text().splitlines())
    return any(first <= uid < first + count for first, _, count in ranges)


def _only_root_or_we_write(folder: int, uid_of_root: int) -> bool:
    """Goes up to the first folder that is ours: no other user can have placed anything in it."""
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
