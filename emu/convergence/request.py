"""What a user asks for, and whether it can be: all mistakes at once, before any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from emu.convergence.events import Event, Incident, incidents
from emu.convergence.planes import PLANES, Plane, spec_of
from emu.errors import SpecError, UsageError
from emu.models import PACKETS
from emu.spec.diagnostic import unknown_name
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import TrafficEntry
from emu.sweeps.work import runner_for

MOST_REPETITIONS = 100


@dataclass(frozen=True)
class ConvergenceRequest:
    """What was asked for."""

    spec: Spec
    planes: tuple[str, ...] = ()
    """None: all that the fabric can have."""
    events: tuple[str, ...] = ()
    """None: all."""
    repetitions: int = 5
    mistakes: bool = False
    """Whether mistakes of operators are measured, too."""
    workers: int | None = None
    dashes: str = "--"
    """What stands before the names of its options: nothing in Python."""


@dataclass(frozen=True)
class Setup:
    """A measurement that can be."""

    request: ConvergenceRequest
    planes: Mapping[Plane, Spec]
    """Each with its spec, without traffic."""
    events: Sequence[Event]
    incidents: Sequence[Incident]
    left_out: Mapping[str, str]
    """Name of a plane or an event -> why the fabric cannot have it."""
    mistakes_at: Incident | None = None
    """Where mistakes are made, and what fails then; None: they are not measured."""

    @property
    def name(self) -> str:
        return self.request.spec.name


def setup_of(request: ConvergenceRequest) -> Setup:
    """The measurement of a request. Raises UsageError or SpecError."""
    mistakes = list(_mistakes(request))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    found, left_out = _places(request)
    planes: dict[Plane, Spec] = {}
    for name in dict.fromkeys(request.planes or PLANES):
        try:
            spec = spec_of(request.spec, PLANES[name])
            runner_for(PACKETS.name).refuse(spec)
        except (SpecError, UsageError) as error:
            if request.planes:
                raise
            left_out[name] = str(error).splitlines()[0]
        else:
            planes[PLANES[name]] = spec
    if not planes:
        raise UsageError("\n".join(f"{name}: {why}" for name, why in left_out.items()))
    mistakes_at = None
    if request.mistakes:
        (mistakes_at,) = incidents(request.spec, [Event.LINK_DOWN], 1)
    everything = [incident for own in found.values() for incident in own]
    return Setup(request, planes, list(found), everything, left_out, mistakes_at)


def _places(request: ConvergenceRequest) -> tuple[dict[Event, list[Incident]], dict[str, str]]:
    """The incidents of each event; and the events that the fabric cannot have, with the reason, if
    the user has named none. Raises UsageError."""
    found: dict[Event, list[Incident]] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys(request.events or Event):
        try:
            found[Event(name)] = incidents(request.spec, [Event(name)], request.repetitions)
        except UsageError as error:
            if request.events:
                raise
            left_out[name] = str(error)
    if not found:
        raise UsageError("\n".join(dict.fromkeys(left_out.values())))
    return found, left_out


def _mistakes(request: ConvergenceRequest) -> Iterator[str]:
    for name in request.planes:
        if name not in PLANES:
            yield f"{request.dashes}planes: {unknown_name('control plane', name, list(PLANES))}"
    for name in request.events:
        if name not in list(Event):
            yield f"{request.dashes}events: {unknown_name('event', name, [*map(str, Event)])}"
    if not 1 <= request.repetitions <= MOST_REPETITIONS:
        yield (
            f"{request.dashes}repetitions: {request.repetitions} is not from 1 to "
            f"{MOST_REPETITIONS}"
        )
    if request.mistakes and request.planes and not {"bgp", "opensm"} & {*request.planes}:
        yield (
            f"{request.dashes}mistakes: they are those of bgp and opensm; add one of them to "
            f"{request.dashes}planes"
        )
    if request.workers is not None and request.workers < 1:
        yield f"{request.dashes}workers: {request.workers} is fewer than 1"
    if _has_tcp(request.spec):
        yield (
            f"{request.spec.name}: its stack is tcp, which sends lost packets again; probes are "
            "datagrams of RDMA, so leave stack out"
        )


def _has_tcp(spec: Spec) -> bool:
    entries: Sequence[TrafficEntry] = spec.traffic
    return spec.hosts.stack == "tcp" or any(entry.stack == "tcp" for entry in entries)
