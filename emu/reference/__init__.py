"""docs/reference: every page of it is written from the code, by `make reference`.

Keys, counters, presets and result fields are those of `emu.explain`. Commands come from their
options (`commands`), classes and functions from their docstrings (`python_api`).
"""

from __future__ import annotations

from emu.explain import pages as explained
from emu.reference import commands, python_api


def pages() -> dict[str, str]:
    """File name -> text."""
    return explained.pages() | {"cli.md": commands.page(), "python.md": python_api.page()}
