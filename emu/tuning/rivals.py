"""What a winner is compared with: the spec as it is, the defaults, and the presets.

    spec        the spec as it is, if it gives a varied key a value
    defaults    the spec without the varied keys, so that emu derives them
    PRESET      the defaults with the preset's marking curve, pause threshold and alpha

Buffer, classes, lossless priorities and scheduling are the spec's in all of them: the hardware and
the workload decide these, and a preset with another buffer would be another switch. Presets are of
RoCE switches; on InfiniBand there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.errors import SpecError
from emu.spec.from_code import spec_from_mapping
from emu.spec.presets import PRESETS
from emu.spec.scenario import Spec
from emu.spec.settings import put
from emu.spec.switch import SwitchSpec
from emu.units import write_size

AS_IT_IS = "spec"
DEFAULTS = "defaults"


@dataclass(frozen=True)
class Rival:
    """Settings that a winner must beat."""

    name: str
    spec: Spec
    meaning: str


def rivals_of(spec: Spec, keys: Sequence[str]) -> list[Rival]:
    """The rivals of a search over these keys. A preset that the spec's rules refuse is left out."""
    data = _without_variants(spec)
    plain = deepcopy(data)
    given = [key for key in keys if _drop(plain, key.split("."))]
    found = []
    if given:
        found.append(Rival(AS_IT_IS, _spec(data), "the spec as it is"))
    found.append(Rival(DEFAULTS, _spec(plain), "the varied keys at emu's defaults"))
    if spec.fabric_kind.is_ethernet:
        found += _presets(plain)
    return found


def _presets(plain: dict[str, Any]) -> Iterator[Rival]:
    for name, preset in PRESETS.items():
        data = deepcopy(plain)
        for key in _OF_PRESETS:
            _drop(data, key.split("."))
        settings = preset_settings(preset, has_pfc=bool(data.get("switches", {}).get("pfc")))
        for key, value in settings.items():
            put(data, key, value)
        try:
            own = _spec(data)
        except SpecError:
            continue  # as a curve that this spec's rules refuse
        yield Rival(
            name, own, f"preset {name}: " + ", ".join(f"{k} {v}" for k, v in settings.items())
        )


_OF_PRESETS = (
    "switches.ecn.kmin",
    "switches.ecn.kmax",
    "switches.ecn.pmax",
    "switches.ecn.queues",
    "switches.pfc.xoff",
    "switches.pfc.xon",
    "switches.alpha",
)


def preset_settings(preset: SwitchSpec, *, has_pfc: bool) -> dict[str, Any]:
    """The settings that a preset brings: its curve, its pause threshold and its alpha."""
    found: dict[str, Any] = {}
    if preset.ecn is not None:
        found["switches.ecn.kmin"] = write_size(preset.ecn.kmin_bytes)
        found["switches.ecn.kmax"] = write_size(preset.ecn.kmax_bytes)
        found["switches.ecn.pmax"] = preset.ecn.pmax
    if preset.pfc is not None and has_pfc:
        found["switches.pfc.xoff"] = str(preset.pfc.xoff)
    if "alpha" in preset.model_fields_set:
        found["switches.alpha"] = preset.alpha
    return found


def _without_variants(spec: Spec) -> dict[str, Any]:
    data = spec.to_mapping()
    data.pop("compare", None)
    return data


def _spec(data: dict[str, Any]) -> Spec:
    return spec_from_mapping(deepcopy(data), source=str(data["name"]), folder=Path.cwd())


def _drop(data: Any, path: Sequence[str]) -> bool:
    """Removes a key. Returns whether it was there. An emptied `ecn:` stays, since it is `on`."""
    *around, last = path
    for step in around:
        data = data.get(step) if isinstance(data, dict) else None
    return isinstance(data, dict) and data.pop(last, None) is not None
