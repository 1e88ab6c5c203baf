"""The registry of clocks: each clock has a runner, and an unknown name gets a hint."""

from __future__ import annotations

from typing import get_args

import pytest

from emu.clocks import CLOCKS, ClockName
from emu.errors import UsageError
from emu.runtime import runner_on


def test_every_clock_has_its_runner() -> None:
    assert set(CLOCKS) == set(get_args(ClockName))
    for name, clock in CLOCKS.items():
        assert runner_on(name).clock is clock


def test_unknown_clock_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match=r"virtuel.*did you mean 'virtual'"):
        runner_on("virtuel")
