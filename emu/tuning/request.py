"""What a user asks a search for, and whether it can be: all mistakes at once, before any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emu.errors import EmuError, SpecError, UsageError
from emu.measure.bootstrap import FEWEST
from emu.spec.scenario import Spec
from emu.sweeps.plan import Basis, base_of
from emu.sweeps.request import Request, plan_of
from emu.sweeps.values import Axis, Span, values_of
from emu.tuning.goals import Bound, Wish
from emu.tuning.parameters import Parameter, parameter
from emu.tuning.ranges import lengths_of, range_of
from emu.tuning.rivals import Rival, rivals_of

LOADS = (0.8, 1.2)
_PROBES = 16
"""Points of the ranges, of which one must be a valid spec."""
_MOST_FINDINGS = 4
"""Of these points, that are shown if none is."""


@dataclass(frozen=True)
class TuneRequest:
    """A search as it was asked for."""

    spec: Spec
    vary: Mapping[str, Sequence[Any] | Span | None]
    """Keys with their values; None: emu chooses the range."""
    wishes: Sequence[Wish]
    bounds: Sequence[Bound] = ()
    seeds: int = FEWEST
    trials: int = 50
    held_out: int = 2 * FEWEST
    loads: tuple[float, ...] = LOADS
    model: str = "packets"
    workers: int | None = None
    scheduler: str | None = None
    option: str = "--vary"

    @property
    def dashes(self) -> str:
        """What stands before the names of its options: nothing in Python."""
        return "--" if self.option.startswith("--") else ""


@dataclass(frozen=True)
class Setup:
    """A search that can be."""

    request: TuneRequest
    parameters: Sequence[Parameter]
    rivals: Sequence[Rival]

    @property
    def spec(self) -> Spec:
        return self.request.spec

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds of the search: the spec's and those after it."""
        return [self.spec.seed + further for further in range(self.request.seeds)]

    @cached_property
    def held_out_seeds(self) -> list[int]:
        """Seeds that the search has not seen: those after its own."""
        first = self.seeds[-1] + 1
        return [first + further for further in range(self.request.held_out)]

    @cached_property
    def basis(self) -> Basis:
        """What all runs have in common. A base for the spec, and one for each rival."""
        bases = {"": base_of(self.spec)} | {own.name: base_of(own.spec) for own in self.rivals}
        columns = [own.column for own in self.parameters]
        request = self.request
        return Basis(self.spec.name, bases, columns, request.model, (), request.option)


def setup_of(request: TuneRequest) -> Setup:
    """The search of a request. Raises UsageError or SpecError with all mistakes."""
    mistakes = list(_mistakes(request))
    parameters: list[Parameter] = []
    for key, values in request.vary.items():
        try:
            parameters.append(_parameter(request, key, values))
        except UsageError as mistake:
            mistakes.append(str(mistake))
    of_the_sweep, of_the_spec = _mistakes_of_the_sweep(request, parameters)
    mistakes += of_the_sweep
    if mistakes:
        raise UsageError("\n".join(dict.fromkeys([*mistakes, *of_the_spec])))
    if of_the_spec:
        raise SpecError(of_the_spec)
    return Setup(request, parameters, rivals_of(request.spec, list(request.vary)))


def _parameter(request: TuneRequest, key: str, values: Sequence[Any] | Span | None) -> Parameter:
    if values is not None:
        return parameter(Axis(key, values))
    chosen = range_of(key, lengths_of(request.spec), request.option)
    return parameter(Axis(key, values_of(chosen.values, f"{request.option} {key}")), chosen.why)


def _mistakes(request: TuneRequest) -> Iterator[str]:
    dashes = request.dashes
    if not request.vary:
        yield f"{request.option}: name a key at least, like {request.option} switches.ecn.kmin"
    if not request.wishes:
        yield f"{dashes}minimise: name a goal at least, like {dashes}minimise fct_slowdown.p99"
    names = [wish.name for wish in request.wishes]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"{dashes}minimise {name}: is a goal twice; keep one of them"
    for key, values in request.vary.items():
        if key == "seed":
            yield f"{request.option} seed: a seed is no setting; {dashes}seeds has their number"
        elif isinstance(values, Sequence) and len(set(map(str, values))) < 2:
            yield f"{request.option} {key}: has fewer than two values, so nothing to choose"
    yield from _mistakes_of_numbers(request)


def _mistakes_of_numbers(request: TuneRequest) -> Iterator[str]:
    dashes = request.dashes
    if request.trials < 1:
        yield f"{dashes}trials: there must be one at least"
    if request.held_out < FEWEST:
        option = f"{dashes}held-out" if dashes else "held_out"
        yield (
            f"{option}: {request.held_out} seeds are too few; a difference that is not chance "
            f"takes {FEWEST}"
        )
    for load in request.loads:
        if not 0 < load <= 100 or load == 1:
            yield f"{dashes}loads: {load:g} is no other load; write factors like 0.8,1.2"


def _mistakes_of_the_sweep(
    request: TuneRequest, parameters: Sequence[Parameter]
) -> tuple[list[str], list[str]]:
    """Mistakes that a sweep over the same keys would have, and findings of the spec: some points of
    the ranges must be valid, so that a key that does not exist starts nothing."""
    axes = [Axis(own.key, own.values) for own in parameters]
    asked = Request(
        request.spec,
        axes=axes,
        random=_PROBES if axes else None,
        seeds=request.seeds,
        model=request.model,
        workers=request.workers,
        scheduler=request.scheduler,
        option=request.option,
    )
    try:
        plan_of(asked)
    except SpecError as error:
        left = len(error.findings) - _MOST_FINDINGS
        more = [f"and {left} more like these"] if left > 0 else []
        return [], [*error.findings[:_MOST_FINDINGS], *more]
    except EmuError as mistake:
        return str(mistake).splitlines(), []
    return [], []
