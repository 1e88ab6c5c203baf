"""What a user asks for, and whether it can be: all mistakes at once, before any run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from emu.errors import EmuError, SpecError, UsageError
from emu.fabric_kind import FABRIC_KINDS
from emu.measure.bootstrap import FEWEST
from emu.models import PACKETS
from emu.sensitivities.change import Kind
from emu.sensitivities.pinned import pinned
from emu.spec.diagnostic import unknown_name
from emu.spec.from_code import with_values
from emu.spec.scenario import Spec
from emu.sweeps.plan import Basis, base_of
from emu.sweeps.request import ALL, Request, plan_of
from emu.sweeps.work import runner_for


@dataclass(frozen=True)
class SensitivityRequest:
    """What was asked for."""

    spec: Spec
    variants: tuple[str, ...] = ()
    """Names of the spec's `compare:`, each a side; or ALL."""
    fabrics: tuple[str, ...] = ()
    """Kinds of fabric, each a side with the spec's other keys. Neither: the spec as it is."""
    seeds: int = FEWEST
    workers: int | None = None
    scheduler: str | None = None
    dashes: str = "--"
    """What stands before the names of its options: nothing in Python."""


@dataclass(frozen=True)
class Setup:
    """A measurement that can be."""

    request: SensitivityRequest
    sides: Mapping[str, Spec]
    """Name -> the pinned spec of a side."""
    kinds: Collection[Kind] = tuple(Kind)
    """The kinds of changes that are made."""

    @property
    def name(self) -> str:
        return self.request.spec.name

    @cached_property
    def seeds(self) -> Sequence[int]:
        """The spec's seed and those after it."""
        return [self.request.spec.seed + further for further in range(self.request.seeds)]

    @cached_property
    def basis(self) -> Basis:
        """What all runs have in common: a base for each side."""
        bases = {name: base_of(spec) for name, spec in self.sides.items()}
        return Basis(self.name, bases, (), PACKETS.name, ("ports",), "change")


def setup_of(request: SensitivityRequest) -> Setup:
    """The measurement of a request. Raises UsageError or SpecError with all mistakes."""
    mistakes = [*_mistakes(request), *_mistakes_of_the_sweep(request)]
    if mistakes:
        raise UsageError("\n".join(dict.fromkeys(mistakes)))
    sides = _sides(request)
    for name, spec in sides.items():
        runner_for(PACKETS.name).refuse(spec)
        if not spec.fabric_flows():
            raise UsageError(f"{name}: no traffic crosses the fabric, so no change costs anything")
    return Setup(request, {name: pinned(spec) for name, spec in sides.items()})


def _mistakes(request: SensitivityRequest) -> Iterator[str]:
    dashes = request.dashes
    if request.variants and request.fabrics:
        yield f"{dashes}fabrics: {dashes}variants names the fabrics already; leave one of them out"
    for name in request.fabrics:
        if name not in FABRIC_KINDS:
            yield f"{dashes}fabrics: {unknown_name('fabric', name, list(FABRIC_KINDS))}"


def _mistakes_of_the_sweep(request: SensitivityRequest) -> list[str]:
    """Mistakes that a sweep over the same variants and seeds would have. Raises SpecError."""
    asked = Request(
        request.spec,
        variants=request.variants,
        seeds=request.seeds,
        workers=request.workers,
        scheduler=request.scheduler,
        option=f"{request.dashes}vary",
    )
    try:
        plan_of(asked)
    except SpecError:
        raise
    except EmuError as mistake:
        return str(mistake).splitlines()
    return []


def _sides(request: SensitivityRequest) -> dict[str, Spec]:
    spec = request.spec
    if request.variants:
        named = spec.compare if ALL in request.variants else request.variants
        known = spec.variants()
        return {name: known[name] for name in named}
    kinds = dict.fromkeys(request.fabrics) or (spec.fabric,)
    source = f"{request.dashes}fabrics"
    return {
        name: spec if name == spec.fabric else with_values(spec, {"fabric": name}, source=source)
        for name in kinds
    }
