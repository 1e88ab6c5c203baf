"""The requirements of a test."""

from __future__ import annotations

import pytest

from emu.errors import HostError
from emu.lab.probe import require


def need(*names: str) -> None:
    """Skips, with the reason, if one of these is missing; the names are those of `emu check`."""
    try:
        require(*names)
    except HostError as error:
        pytest.skip(f"needs {error}")
