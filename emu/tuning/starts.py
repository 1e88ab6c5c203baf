"""The first trials of a study: values that people know, as far as they are in the ranges.

The spec's own values come first, then each preset's, with the spec's for the keys that the preset
leaves open. A value that is not in its range is left to Optuna. So a search does not end behind
what it is compared with, if that is in the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.spec.flat import flat, written
from emu.spec.presets import PRESETS
from emu.spec.scenario import Spec
from emu.tuning.parameters import Parameter
from emu.tuning.rivals import preset_settings


def starts(spec: Spec, parameters: Sequence[Parameter]) -> list[dict[str, Any]]:
    """What Optuna is to draw first: key -> number or word. Each start once, none empty."""
    found: list[dict[str, Any]] = []
    for known in _known(spec):
        start = {}
        for own in parameters:
            drawn = own.drawn(known[own.key]) if own.key in known else None
            if drawn is not None:
                start[own.key] = drawn
        if start and start not in found:
            found.append(start)
    return found


def _known(spec: Spec) -> Iterator[Mapping[str, Any]]:
    own = _own_values(spec)
    yield own
    if spec.fabric_kind.is_ethernet:
        for preset in PRESETS.values():
            yield own | preset_settings(preset, has_pfc=True)


def _own_values(spec: Spec) -> dict[str, Any]:
    """The values in force at the first host and at the switch port to it, given or derived."""
    topology = spec.topology.build()
    host = next(iter(topology.host))
    port = topology.peer[topology.ports[host][0]]
    values = dict(flat(written(spec.host(host)), "hosts."))
    if port.node in topology.switch:
        values |= flat(written(spec.port(port)), "switches.")
    return values | dict(flat(spec.to_mapping()))
