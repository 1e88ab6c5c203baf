"""The programs of the self-tests, compiled once per session."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu._build.core import COVERAGE, SANITIZE
from tests.core.self_tests import build


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> Path:
    """The folder of the compiled self-tests: built with sanitizers, unless coverage is measured."""
    is_counting = pytestconfig.getoption("--core") == COVERAGE.folder
    return build(COVERAGE if is_counting else SANITIZE)
