"""What programs print, read back."""

from __future__ import annotations

import re


def fields(text: str) -> dict[str, str]:
    """The `name: value` lines of ibstat, ibstatus and ibv_devinfo."""
    found = re.findall(r"^\s*([^:\n]+):[ \t]*(\S.*)$", text, re.MULTILINE)
    return {name.strip(): value.strip() for name, value in found}
