"""Whether who runs `emu` is root, and what that changes in a remedy."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_UID_MAP = Path("/proc/self/uid_map")


def is_root() -> bool:
    """Of the machine or a container, and not only of a lab, in which every user is root."""
    if os.geteuid() != 0:
        return False
    with suppress(OSError):  # no more open files
        _, _, users = _UID_MAP.read_text().split()[:3]
        return int(users) > 1
    return False


def remedy_for_me(remedy: str) -> str:
    """Root needs no sudo, which small systems do not have."""
    return remedy.replace("sudo ", "") if "sudo " in remedy and is_root() else remedy
