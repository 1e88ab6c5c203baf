"""The machine that all tests of this folder share, since it takes long to boot."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.vm.machine import ROOT, Machine


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    if "EMU_VM" not in os.environ:
        pytest.skip("takes a machine of its own, and minutes: make vm-test")
    with Machine(ROOT / "build" / "vm") as booted:
        yield booted
