"""Runs a spec on the exact and on the virtual clock, and lists what differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emu.measure.recording import Recording
from emu.runtime import runner_on
from emu.spec.model import Spec, spec_from_text

_MAY_DIFFER = {"clock", "plane", "marker", "wall_seconds", "cpu_seconds", "captures"}
"""Fields that name the clock, the plane, the machine's time and files."""


def spec_of(text: str, *settings: str) -> Spec:
    return spec_from_text(text.encode(), source="same.emu.yml", settings=settings)


def differences(spec: Spec, out: Path) -> list[str]:
    """The fields and captures in which the two runs differ. Writes captures into `out`."""
    runs = {}
    for clock in ("virtual", "exact"):
        folder = out / clock
        folder.mkdir(parents=True)
        runs[clock] = runner_on(clock).run(spec, out=folder)
    return list(differing(runs["virtual"], runs["exact"]))


def differing(virtual: Recording, exact: Recording) -> Iterator[str]:
    for field in fields(Recording):
        if field.name not in _MAY_DIFFER:
            one, other = getattr(virtual, field.name), getattr(exact, field.name)
            yield from _differing(one, other, field.name)
    yield from _differing(sorted(virtual.captures), sorted(exact.captures), "captures")
    for name in virtual.captures.keys() & exact.captures.keys():
        if virtual.captures[name].read_bytes() != exact.captures[name].read_bytes():
            yield f"capture of {name}"


def _differing(one: Any, other: Any, path: str) -> Iterator[str]:
    if isinstance(one, np.ndarray):
        if not np.array_equal(one, other):
            yield path
    elif is_dataclass(one):
        for field in fields(one):
            parts = getattr(one, field.name), getattr(other, field.name)
            yield from _differing(*parts, f"{path}.{field.name}")
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from _differing(one[key], other[key], f"{path}.{key}")
    elif one != other:
        yield f"{path}: {one!r} on the virtual clock, {other!r} on the exact one"[:400]
