"""What a user asks a sweep for, and whether it can be: all mistakes at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from emu.errors import UsageError
from emu.spec.diagnostic import unknown_name
from emu.spec.scenario import Spec
from emu.spec.settings import is_key
from emu.sweeps.plan import Plan, plan
from emu.sweeps.points import VARIANT, Settings, combined, grid, latin_hypercube
from emu.sweeps.values import Axis, Span
from emu.sweeps.work import TABLES

ALL = "all"
"""For all variants of the spec."""


@dataclass(frozen=True)
class Request:
    """A sweep as it was asked for."""

    spec: Spec
    axes: Sequence[Axis] = ()
    points: Sequence[Settings] | None = None
    random: int | None = None
    variants: tuple[str, ...] = ()
    seeds: int | tuple[int, ...] = 1
    """A number of seeds, or the seeds themselves."""
    model: str = "packets"
    tables: tuple[str, ...] = ()
    workers: int | None = None
    scheduler: str | None = None
    option: str = "--vary"

    @property
    def dashes(self) -> str:
        """What stands before the names of its options: nothing in Python."""
        return "--" if self.option.startswith("--") else ""


def plan_of(request: Request) -> Plan:
    """The runs of a request. Raises UsageError or SpecError with all mistakes."""
    mistakes = list(_mistakes(request))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return plan(
        request.spec,
        _points(request),
        variants=_variants(request),
        seeds=_seeds(request),
        model=request.model,
        tables=tuple(dict.fromkeys(request.tables)),
        option=request.option,
    )


def _mistakes(request: Request) -> Iterator[str]:
    yield from _mistakes_of_keys(request)
    yield from _mistakes_of_values(request)
    if request.random is not None:
        yield from _mistakes_of_random(request)
    yield from _mistakes_of_seeds(request)
    yield from _unknown_variants(request)
    for name in request.tables:
        if name not in TABLES:
            yield f"{request.dashes}tables: {unknown_name('table', name, list(TABLES))}"
    yield from _mistakes_of_workers(request)


def _keys(request: Request) -> list[str]:
    """The keys of all axes, and then those of the points, each once for the points."""
    of_points = dict.fromkeys(key for point in request.points or () for key in point)
    return [*(axis.key for axis in request.axes), *of_points]


def _mistakes_of_keys(request: Request) -> Iterator[str]:
    for key, times in Counter(_keys(request)).items():
        if not is_key(str(key)):
            yield f"{request.option} {key}: is no key; write it like switches.ecn.kmin"
        if times > 1:
            yield f"{request.option} {key}: is given twice; keep one of them"


def _mistakes_of_values(request: Request) -> Iterator[str]:
    for axis in request.axes:
        if not isinstance(axis.values, Span):
            if not axis.values:
                yield f"{request.option} {axis.key}: has no values"
        elif axis.values.steps is None and request.random is None:
            yield (
                f"{request.option} {axis.key}: {axis.values.text} says no number of values; write "
                f"{axis.values.text}/5 for five of them, or take {request.dashes}random"
            )


def _mistakes_of_seeds(request: Request) -> Iterator[str]:
    if "seed" in _keys(request) and request.seeds != 1:
        yield (
            f"{request.dashes}seeds: {request.option} has seeds already; leave one of the two out"
        )
    for value in _seeds_varied(request):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            yield f"{request.option} seed: {value!r} is no whole number from 0 on"
    if request.seeds == () or (isinstance(request.seeds, int) and request.seeds < 1):
        yield f"{request.dashes}seeds: there must be one at least"


def _seeds_varied(request: Request) -> Iterator[Any]:
    """The values of the key `seed`, on an axis or in points."""
    for axis in request.axes:
        if axis.key == "seed" and not isinstance(axis.values, Span):
            yield from axis.values
    for point in request.points or ():
        if "seed" in point:
            yield point["seed"]


def _mistakes_of_workers(request: Request) -> Iterator[str]:
    dashes, workers = request.dashes, request.workers
    if workers is not None and request.scheduler is not None:
        yield f"{dashes}workers: a cluster has its own; leave it or {dashes}scheduler out"
    if workers is not None and workers < 1:
        yield f"{dashes}workers: {workers} is less than 1"


def _mistakes_of_random(request: Request) -> Iterator[str]:
    dashes = request.dashes
    if request.points is not None:
        yield f"{dashes}random: {dashes}points has the points already; leave one of the two out"
    if not request.axes:
        yield f"{dashes}random: takes ranges, as {request.option} switches.ecn.kmin=20KB..400KB"
    if request.random is not None and request.random < 1:
        yield f"{dashes}random: {request.random} is less than 1"


def _unknown_variants(request: Request) -> Iterator[str]:
    known = list(request.spec.compare)
    named = [name for name in request.variants if name != ALL]
    in_points = [str(point[VARIANT]) for point in request.points or () if VARIANT in point]
    asked = dict.fromkeys([*named, *in_points])
    if (asked or request.variants) and not known:
        yield f"{request.dashes}variants: {request.spec.name} has no `compare:` section"
        return
    for name in asked:
        if name not in known:
            yield f"{request.dashes}variants: {unknown_name('variant', name, known)}"


def _points(request: Request) -> list[Settings]:
    if request.random is not None:
        return latin_hypercube(request.axes, request.random, request.spec.seed)
    if request.points is None:
        return grid(request.axes)
    return combined([request.points, grid(request.axes)])


def _variants(request: Request) -> list[str]:
    if ALL in request.variants:
        return list(request.spec.compare)
    return list(dict.fromkeys(request.variants))


def _seeds(request: Request) -> list[int]:
    if isinstance(request.seeds, int):
        return [request.spec.seed + further for further in range(request.seeds)]
    return list(request.seeds)
