"""What a user asks for, and whether it can be: all mistakes at once, before any run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from emu.decisions.candidates import (
    Candidate,
    Refused,
    candidates_of,
    host_rate_bps,
    known_fabrics,
)
from emu.decisions.growth import Size, sizes_of
from emu.decisions.names import ALL, CHANGES, FAILURES, IB, NONE, TUNED, USUAL
from emu.decisions.prices import (
    Bill,
    MissingPrices,
    Prices,
    bill_of,
    fabrics_named,
    read_prices,
)
from emu.errors import UsageError
from emu.measure.bootstrap import FEWEST
from emu.sensitivities.change import Kind
from emu.spec.diagnostic import unknown_name
from emu.spec.pydantic_messages import reworded
from emu.spec.scenario import Spec
from emu.spec.settings import is_key
from emu.spec.topology import Link
from emu.sweeps.values import Span
from emu.units import PS_PER_S, parse_time, write_rate
from emu.words import listed

MARGIN = 0.05
LONGEST_SECONDS = 20.0
_KINDS: Mapping[str, tuple[Kind, ...]] = {ALL: tuple(Kind), FAILURES: (Kind.FAILURE,), NONE: ()}


@dataclass(frozen=True)
class DecisionRequest:
    """A decision as it was asked for."""

    spec: Spec
    fabrics: tuple[str, ...] = USUAL
    rates_bps: tuple[int, ...] = ()
    """Of the cables to hosts; none: those of the spec."""
    by: str | None = None
    """The figure that decides; None: emu takes one."""
    margin: float = MARGIN
    prices: Path | None = None
    changes: str = ALL
    grow: Mapping[str, Sequence[Any] | Span] | None = None
    """Keys with a value for each larger size; empty: the usual ones; None: no growth."""
    longest_seconds: float = LONGEST_SECONDS
    """A run of a larger size by packets may take so long; else the flow model does it."""
    vary: Mapping[str, Sequence[Any] | Span | None] | None = None
    """Keys that are tuned, as for `emu tune`; None: emu takes some."""
    trials: int = 24
    seeds: int = FEWEST
    workers: int | None = None
    scheduler: str | None = None
    dashes: str = "--"
    """What stands before the names of its options: nothing in Python."""


@dataclass(frozen=True)
class Setup:
    """A decision that can be."""

    request: DecisionRequest
    candidates: Sequence[Candidate]
    refused: Sequence[Refused]
    sizes: Sequence[Size]
    sizes_refused: Sequence[Refused]
    prices: Prices | None
    bills: Mapping[str, Bill]
    """Name of a candidate -> what it costs; empty without prices."""

    @property
    def name(self) -> str:
        return self.request.spec.name

    @cached_property
    def seeds(self) -> Sequence[int]:
        """The spec's seed and those after it."""
        return [self.request.spec.seed + further for further in range(self.request.seeds)]

    @property
    def kinds(self) -> Collection[Kind]:
        return _KINDS[self.request.changes]


def rates_of(texts: Sequence[str], option: str) -> tuple[int, ...]:
    """Rates as `400Gbit` or `4x NDR`, in bits/s. Raises UsageError with all mistakes."""
    rates, mistakes = [], []
    for text in texts:
        try:
            rates.append(int(Link.model_validate({"rate": text}).rate_bps))
        except ValidationError as error:
            mistakes += [f"{option} {text}: {own.text}" for own in reworded(error)]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return tuple(rates)


def margin_of(value: str | float, option: str) -> float:
    """A share as `5%` or 0.05. Raises UsageError."""
    text = str(value).strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is no share; write it like 5% or 0.05") from None


def seconds_of(text: str, option: str) -> float:
    """A time as `20s`. Raises UsageError."""
    try:
        return parse_time(text) / PS_PER_S
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def setup_of(request: DecisionRequest) -> Setup:
    """The decision of a request. Raises UsageError or SpecError with all mistakes."""
    mistakes = list(_mistakes(request))
    prices = None
    if request.prices is not None:
        try:
            prices = read_prices(request.prices)
        except UsageError as mistake:
            mistakes.append(str(mistake))
    if prices is not None:
        mistakes += _unknown_fabrics(request, prices)
    if mistakes:
        raise UsageError("\n".join(dict.fromkeys(mistakes)))
    spec = request.spec
    rates_bps = request.rates_bps or (host_rate_bps(spec),)
    made, refused = candidates_of(spec, request.fabrics, rates_bps)
    if not made:
        reasons = [f"{own.name}: {own.reason}" for own in refused]
        raise UsageError("\n".join(["no fabric can run this spec:", *reasons]))
    if not made[0].spec.fabric_flows():
        raise UsageError(f"{spec.name}: no traffic crosses the fabric, so every fabric is as good")
    sizes, sizes_refused = _sizes(request, made)
    bills = _bills(request, made, prices)
    return Setup(request, made, refused, sizes, sizes_refused, prices, bills)


def _sizes(
    request: DecisionRequest, made: Sequence[Candidate]
) -> tuple[Sequence[Size], Sequence[Refused]]:
    if request.grow is None:
        return (), ()
    grow = {key: list(values) for key, values in request.grow.items()}  # type: ignore[arg-type]
    sizes, refused = sizes_of(made, grow, request.longest_seconds)
    if grow and refused:
        option = f"{request.dashes}grow"
        raise UsageError("\n".join(f"{option} {own.name}: {own.reason}" for own in refused))
    return sizes, refused


def _bills(
    request: DecisionRequest, made: Sequence[Candidate], prices: Prices | None
) -> dict[str, Bill]:
    """Raises UsageError with all parts that have no price."""
    bills: dict[str, Bill] = {}
    missing: dict[str, list[str]] = {}
    for candidate in made if prices is not None else ():
        try:
            bills[candidate.name] = bill_of(candidate, prices)  # type: ignore[arg-type]
        except MissingPrices as mistake:
            for part in mistake.parts:
                missing.setdefault(part, []).append(candidate.name)
    if missing:
        raise UsageError(
            "\n".join(
                f"{request.prices}: no item fits a {part} of {listed(names)}; add one"
                for part, names in missing.items()
            )
        )
    return bills


def _mistakes(request: DecisionRequest) -> Iterator[str]:
    yield from _mistakes_of_fabrics(request)
    yield from _mistakes_of_numbers(request)
    yield from _mistakes_of_growth(request)
    dashes = request.dashes
    if request.changes not in CHANGES:
        yield f"{dashes}changes: {unknown_name('choice', request.changes, list(CHANGES))}"
    if request.vary and TUNED not in request.fabrics:
        yield f"{dashes}vary: only {TUNED} has a search; add it to {dashes}fabrics"
    if request.workers is not None and request.workers < 1:
        yield f"{dashes}workers: {request.workers} is less than 1"
    if request.workers is not None and request.scheduler is not None:
        yield f"{dashes}workers: a cluster has its own; leave it or {dashes}scheduler out"


def _mistakes_of_fabrics(request: DecisionRequest) -> Iterator[str]:
    dashes = request.dashes
    known = known_fabrics(request.spec)
    if not request.fabrics:
        yield f"{dashes}fabrics: name one at least, like {IB}"
    for name in dict.fromkeys(request.fabrics):
        if name not in known:
            yield f"{dashes}fabrics: {unknown_name('fabric', name, known)}"
        if request.fabrics.count(name) > 1:
            yield f"{dashes}fabrics: {name} is there twice; keep one of them"
    for rate_bps in dict.fromkeys(request.rates_bps):
        if request.rates_bps.count(rate_bps) > 1:
            yield f"{dashes}rates: {write_rate(rate_bps)} is there twice; keep one of them"


def _mistakes_of_numbers(request: DecisionRequest) -> Iterator[str]:
    dashes = request.dashes
    longest = "longest-run" if dashes else "longest_run"
    if request.seeds < FEWEST:
        yield f"{dashes}seeds: {request.seeds} are too few; a difference takes {FEWEST}"
    if not 0 <= request.margin <= 1:
        yield f"{dashes}margin: must be a share from 0 to 1, as 5%, not {request.margin:g}"
    if request.trials < 1:
        yield f"{dashes}trials: there must be one at least"
    if request.longest_seconds < 0:
        yield f"{dashes}{longest}: must be 0s or more"


def _mistakes_of_growth(request: DecisionRequest) -> Iterator[str]:
    dashes = request.dashes
    lengths = set()
    for key, values in (request.grow or {}).items():
        if not is_key(key):
            yield f"{dashes}grow {key}: is no key; write it like topology.leaves=8,16"
        elif isinstance(values, Span):
            yield f"{dashes}grow {key}: {values.text} is a range; write the values with commas"
        else:
            lengths.add(len(values))
            for value in dict.fromkeys(map(str, values)):
                if [str(own) for own in values].count(value) > 1 and len(request.grow or ()) == 1:
                    yield f"{dashes}grow {key}: {value} is there twice; keep one of them"
    if len(lengths) > 1:
        yield f"{dashes}grow: all keys must have as many values, one for each size"


def _unknown_fabrics(request: DecisionRequest, prices: Prices) -> Iterator[str]:
    known = ["roce", *known_fabrics(request.spec)]
    for name in sorted(fabrics_named(prices) - set(known)):
        yield f"{request.prices}: {unknown_name('fabric', name, known)}"
