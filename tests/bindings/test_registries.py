"""Specs and core have the same congestion controls and loss recoveries."""

from __future__ import annotations

from typing import Any

import pytest

from emu._core import lib
from emu.bindings.congestion_control import core_controls, core_recoveries
from emu.bindings.faults import core_faults
from emu.spec.congestion_control import CONTROLS
from emu.spec.fault import KINDS, Fault
from emu.spec.fault.packet_choice import MAX_PSNS
from emu.spec.host import Nic
from emu.spec.load import spec_from_text
from emu.spec.recovery import RECOVERIES
from emu.spec.scenario import Spec

PACKETS = 10
"""The BDP of a path, for controls whose initial window depends on it."""


@pytest.mark.parametrize("name", CONTROLS)
def test_core_has_the_control_with_its_parameters(name: str) -> None:
    control = Nic().control(name).on_path(PACKETS)
    assert core_controls()[name] == control.parameters().keys()


def test_specs_have_every_control_of_the_core() -> None:
    assert core_controls().keys() == CONTROLS.keys()


def test_specs_have_every_recovery_of_the_core() -> None:
    assert core_recoveries() == RECOVERIES.keys()


SPEC = spec_from_text(
    b"topology: {kind: dumbbell, hosts_per_side: 1}\nswitches: {pfc: {}, ecn: {}}\n", source="test"
)
ON_CABLE = {"cable": "left:h1"}
ON_SWITCH = {"switch": "left"}
RANDOM, LISTED = {**ON_CABLE, "every": 2}, {**ON_CABLE, "psn": [1]}
FAULTS: dict[str, list[dict[str, Any]]] = {
    "corruption": [RANDOM, LISTED],
    "delay": [{**ON_CABLE, "by": "1us"}],
    "duplication": [RANDOM, LISTED],
    "flow-control": [RANDOM],
    "ignored-cnps": [{"host": "h1"}],
    "link-down": [ON_CABLE],
    "link-flap": [{**ON_CABLE, "period": "2us", "down": "1us"}],
    "loss": [RANDOM, LISTED],
    "pause-storm": [{"host": "h1", "priority": 3}],
    "reordering": [{**RANDOM, "by": "1us"}, {**LISTED, "by": "1us"}],
    "slow-receiver": [{"host": "h1", "rate": "1Gbit", "buffer": "64KB"}],
    "small-headroom": [{**ON_SWITCH, "fraction": 0.5}],
    "switch-down": [ON_SWITCH],
    "wrong-ecn": [{**ON_SWITCH, "kmin": "1KB"}],
    "wrong-map": [{**ON_SWITCH, "dscp": {26: 0}}],
}
"""Faults that together set every parameter of their kind."""
NEVER_SET = {"flow-control": {"by_psn", "psn_count", "psns"}}
"""Parameters that the core shares among kinds and this kind's spec never sets: a credit update or
a pause frame has no PSN."""


def parameters_of(fault: Fault, spec: Spec) -> set[str]:
    port = fault.what.ports(spec, spec.topology.build())[0]
    return set(fault.what.parameters(spec, port))


@pytest.mark.parametrize("kind", KINDS)
def test_core_has_the_fault_with_its_parameters(kind: str) -> None:
    faults = [Fault.model_validate({kind: parameters}) for parameters in FAULTS[kind]]
    named = set().union(*(parameters_of(fault, SPEC) for fault in faults))
    assert core_faults()[KINDS[kind].core or kind] == named | NEVER_SET.get(kind, set())


def test_specs_have_every_fault_of_the_core() -> None:
    assert core_faults().keys() == {what.core or kind for kind, what in KINDS.items()}


def test_a_fault_names_as_many_psns_as_the_core_keeps() -> None:
    assert lib.CHOICE_PSNS == MAX_PSNS
