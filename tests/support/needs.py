"""What a test cannot do without."""

from __future__ import annotations

import pytest

from emu.errors import HostError
from emu.lab.probe import require


def need(*names: str) -> None:
    """Skips, with the reason, where one of these is missing; names as `emu check` has them."""
    try:
        require(*names)
    except HostError as error:
        pytest.skip(f"needs {error}")
