"""The C core under sanitizers: self-tests in C."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.self_tests import SelfTest, run, self_tests


@pytest.mark.parametrize("test", self_tests(), ids=lambda test: test.name)
def test_core(programs: Path, test: SelfTest) -> None:
    """The behaviour that the self-test's name states, without a finding of ASan or UBSan."""
    run(programs / test.program, test.name)
