"""Whether the user is root, and how that changes a remedy."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_UID_MAP = Path("/proc/self/uid_map")


def is_root() -> bool:
    """Whether this user is root of the machine or a container; in a lab every user is root."""
    if os.geteuid() != 0:
        return False
    with suppress(OSError):  # no more open files
        _, _, users = _UID_MAP.read_text().split()[:3]
        return int(users) > 1
    return False


def remedy_for_me(remedy: str) -> str:
    """The remedy without sudo if the user is root: small systems do not have sudo."""
    return remedy.replace("sudo ", "") if "sudo " in remedy and is_root() else remedy
