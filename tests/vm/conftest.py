"""The virtual machine that all tests of this folder share, because it boots slowly."""

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
