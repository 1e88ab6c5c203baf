"""Rules about hosts: what a diagnostic says, and which key it points at."""

from __future__ import annotations

from typing import get_args

import pytest

from emu.errors import SpecError
from emu.spec.congestion_control import Swift
from emu.spec.host import Nic, key_of_control
from emu.spec.model import spec_from_text

SPEC = """
topology:
  kind: leaf-spine
  spines: 1
  leaves: 1
  hosts_per_leaf: 2
hosts: {nic: {cc: swift}}
"""


def test_parameters_have_their_controls_key() -> None:
    controls = set(get_args(Nic.model_fields["cc"].annotation)) - {"none"}
    assert {key_of_control(cc) for cc in controls} <= set(Nic.model_fields)
    for cc in controls:
        assert Nic().control(cc) is getattr(Nic(), key_of_control(cc))


def test_slowest_rate_is_blamed_on_its_own_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever control has such a rate: here Swift, to which one is given."""
    monkeypatch.setattr(Swift, "slowest", "min_rate")
    monkeypatch.setattr(Swift, "parameters", lambda self: {"min_rate": 1e15})
    with pytest.raises(SpecError) as refused:
        spec_from_text(SPEC.encode(), source="test.emu.yml")
    assert "hosts.nic.swift.min_rate" in str(refused.value)
