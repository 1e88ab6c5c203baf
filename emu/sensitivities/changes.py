"""All changes of a side, as far as the spec's rules allow them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from emu.errors import EmuError
from emu.models import PACKETS
from emu.sensitivities.change import Change, Kind, LeftOut
from emu.sensitivities.failures import failure_changes
from emu.sensitivities.mistakes import mistake_changes
from emu.sensitivities.places import BusiestPlaces
from emu.sensitivities.settings import setting_changes
from emu.spec.diagnostic import Place, Places, dotted
from emu.spec.document import Document
from emu.spec.scenario import Spec
from emu.spec.settings import change
from emu.spec.validation import validated
from emu.sweeps.work import runner_for


@dataclass(frozen=True)
class Changes:
    """What is measured of a side, and what is not."""

    made: Sequence[Change]
    left_out: Sequence[LeftOut]


def changes_of(spec: Spec, places: BusiestPlaces, kinds: Collection[Kind] = tuple(Kind)) -> Changes:
    """The changes of these kinds, of a pinned spec. One that the rules refuse is left out with
    their reason."""
    made: list[Change] = []
    left_out: list[LeftOut] = []
    for own in (each for each in _all(spec, places) if each.kind in kinds):
        if isinstance(own, LeftOut):
            left_out.append(own)
        elif reason := _why_refused(spec, own):
            left_out.append(LeftOut(own.name, own.kind, f"{own.what}: {reason}"))
        else:
            made.append(own)
    return Changes(made, left_out)


def _all(spec: Spec, places: BusiestPlaces) -> Iterator[Change | LeftOut]:
    yield from setting_changes(spec)
    yield from mistake_changes(spec, places)
    yield from failure_changes(spec, places)


def _why_refused(spec: Spec, own: Change) -> str:
    """The first finding about the changed spec; empty if there is none."""
    document = Document(json.loads(spec.to_json()), Places(Place(0, 0, spec.name)))
    for key, value in own.settings.items():
        change(document, key, value, key)
    changed, findings = validated(document)
    if findings:
        first = findings[0]
        return f"{dotted(first.path)}: {first.text}" if first.path else first.text
    try:
        runner_for(PACKETS.name).refuse(changed)
    except EmuError as error:
        return str(error)
    return ""
