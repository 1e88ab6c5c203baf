"""The queue disciplines of specs and those of the core are the same."""

from __future__ import annotations

import re

import pytest

from emu.bindings.queue_disciplines import CoreDisciplines, core_disciplines
from emu.errors import FabricError
from emu.spec.queue_discipline import Discipline, disciplines_of
from tests.support.small_fabrics import PAIR, spec_of

ALL = ("switches.ecn=on", "switches.fecn=on")


def test_specs_use_all_disciplines_and_their_parameters() -> None:
    used: dict[str, frozenset[str]] = {}
    for fabric in ("roce", "ib"):
        spec = spec_of(PAIR, f"fabric={fabric}", *ALL)
        port = spec.topology.build().ports["left"][0]
        used |= {own.name: frozenset(own.parameters) for own in disciplines_of(spec, port)}
    assert used == core_disciplines()


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        (Discipline("shorten", (0,), {}), "the core has no queue discipline shorten"),
        (
            Discipline("packet-limit", (0,), {"packet": 1}),
            "only one of spec and core has packet, packets",
        ),
    ],
)
def test_names_that_differ_are_errors(unknown: Discipline, message: str) -> None:
    with pytest.raises(FabricError, match=re.escape(message)):
        CoreDisciplines([unknown], seed=1)


def test_a_port_has_room_for_a_few() -> None:
    limit = Discipline("packet-limit", (0,), {"packets": 1})
    CoreDisciplines([limit] * 8, seed=1)
    with pytest.raises(FabricError, match="a port has 9 queue disciplines"):
        CoreDisciplines([limit] * 9, seed=1)
