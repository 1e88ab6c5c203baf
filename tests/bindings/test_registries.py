"""Every congestion control and loss recovery of a spec is in the core, and the other way round."""

from __future__ import annotations

import pytest

from emu.bindings.congestion_control import core_controls, core_recoveries
from emu.spec.congestion_control import CONTROLS
from emu.spec.host import Nic
from emu.spec.recovery import RECOVERIES

PACKETS = 10
"""Of a path, for controls whose start depends on it."""


@pytest.mark.parametrize("name", CONTROLS)
def test_core_has_the_control_with_its_parameters(name: str) -> None:
    control = Nic().control(name).on_path(PACKETS)
    assert core_controls()[name] == control.parameters().keys()


def test_specs_have_every_control_of_the_core() -> None:
    assert core_controls().keys() == CONTROLS.keys()


def test_specs_have_every_recovery_of_the_core() -> None:
    assert core_recoveries() == RECOVERIES.keys()
