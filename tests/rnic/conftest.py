"""The self-tests' programs, compiled once in a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rnic.core import build


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the compiled self-tests."""
    return build()
