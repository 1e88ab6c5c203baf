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
        (Discipline("wred", (0,), {"kmid": 1}), "queue discipline wred has no parameter kmid"),
    ],
)
def test_unknown_names_are_errors(unknown: Discipline, message: str) -> None:
    with pytest.raises(FabricError, match=re.escape(message)):
        CoreDisciplines([unknown], seed=1)
