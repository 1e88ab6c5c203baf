"""Rules about hosts: the text of the diagnostic and the key that it names."""

from __future__ import annotations

import pytest

from emu.errors import SpecError
from emu.spec.congestion_control import CONTROLS
from emu.spec.congestion_control.registry import Entry
from emu.spec.congestion_control.swift import Swift
from emu.spec.host import Nic
from emu.spec.model import spec_from_text

SPEC = """
topology:
  kind: leaf-spine
  spines: 1
  leaves: 1
  hosts_per_leaf: 2
hosts: {nic: {cc: swift}}
"""


@pytest.mark.parametrize("entry", [entry for entry in CONTROLS.values() if entry.key])
def test_parameters_have_their_controls_key(entry: Entry) -> None:
    parameters = Nic().parameters_of(entry.model)
    assert type(parameters) is entry.model
    assert parameters is getattr(Nic(), entry.key or "")


def test_too_high_a_minimum_rate_names_the_controls_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any congestion control may have a minimum rate. The test gives one to Swift."""
    monkeypatch.setattr(Swift, "slowest", "min_rate")
    monkeypatch.setattr(Swift, "parameters", lambda self: {"min_rate": 1e15})
    with pytest.raises(SpecError) as refused:
        spec_from_text(SPEC.encode(), source="test.emu.yml")
    assert "hosts.nic.swift.min_rate" in str(refused.value)
