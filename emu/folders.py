"""The folders of a user's own files, by the XDG Base Directory Specification."""

from __future__ import annotations

import os
from pathlib import Path

from emu.errors import UsageError


def user_folder(variable: str, in_home: str) -> Path:
    """The folder that an environment variable names; if it is not set, one in the home folder.

    Raises UsageError if there is no home folder.
    """
    named = os.environ.get(variable)
    if named:
        return Path(named)
    try:
        return Path.home() / in_home
    except RuntimeError:
        raise UsageError(
            f"you have no home folder: HOME is not set, and this machine knows no user "
            f"{os.geteuid()}; set HOME, or {variable}"
        ) from None
