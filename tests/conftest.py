"""Settings for all tests: repeatable random inputs, and the choice of the compiled core."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from emu.sweeps.cluster import clusters_kept

pytest.register_assert_rewrite("tests.support")

collect_ignore = [] if find_spec("mininet") else ["topologies/test_mininet_command.py"]
"""Only Debian's own Python has Mininet."""

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("long", deadline=None, max_examples=2000)  # --hypothesis-profile long
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _clusters() -> Iterator[None]:
    """Tests share the workers of sweeps, which take seconds to start."""
    with clusters_kept():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("emu")
    group.addoption("--core", type=Path, metavar="DIR", help="test the emu._core built there")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--core")
    if folder is not None:
        _load_core(folder)


def _load_core(folder: Path) -> None:
    """Make the module in `folder` the one that `import emu._core` finds."""
    import emu

    (path,) = folder.glob("_core.*.so")
    spec = importlib.util.spec_from_file_location("emu._core", path)
    assert spec is not None
    assert spec.loader is not None
    emu._core = sys.modules["emu._core"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(emu._core)
