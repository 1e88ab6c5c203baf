"""The fabrics to choose from, at each link rate.

    ib             InfiniBand
    roce-lossless  RoCE with PFC, ECN and congestion control; thresholds at their defaults
    roce-tuned     the same with settings that a search finds
    roce-lossy     RoCE without PFC; NICs send lost packets again, and these alone
    spec           the spec as it is
    VARIANT        a variant of its `compare:`; compare.VARIANT if it has one of these names

Topology, workload, buffers, classes and latencies are the spec's in all of them, and so are checks
of the workload. A rate is that of the fastest cable to a host; all other cables keep their ratio to
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from emu.decisions.names import AS_IT_IS, IB, LOSSLESS, LOSSY, TUNED, USUAL
from emu.errors import EmuError, SpecError, UsageError
from emu.models import PACKETS
from emu.spec.base import Model
from emu.spec.congestion_control import CONTROLS
from emu.spec.from_code import spec_from_mapping
from emu.spec.scenario import Spec
from emu.spec.topology import Link
from emu.sweeps.work import runner_for
from emu.units import write_rate

_NIC_CONTROL = "dcqcn-nvidia"
"""What NICs for RoCE come with."""
_RECOVERY = ("recovery", "reordering")
_OF_WORKLOADS = {
    *("completed", "finish", "goodput", "rate", "latency", "fct_slowdown"),
    *("iops", "bandwidth", "fairness", "share", "fail"),
}
"""Checks of what a workload needs. Others are about one kind of fabric, as checks of counters, and
only the spec itself and its variants keep them."""
_THRESHOLDS = {
    "ecn": ("kmin", "kmax", "pmax", "queues"),
    "pfc": ("xoff", "xon", "xon_offset", "headroom"),
}


@dataclass(frozen=True)
class Candidate:
    """A fabric that can be chosen."""

    name: str
    """As `ib`; with several rates `ib@400Gbit`."""
    fabric: str
    """The name without the rate."""
    rate_bps: int
    spec: Spec


@dataclass(frozen=True)
class Refused:
    """A fabric that cannot be chosen, with the reason."""

    name: str
    reason: str


def known_fabrics(spec: Spec) -> list[str]:
    """The names that candidates of a spec can have, without rates."""
    return [*USUAL, AS_IT_IS, *_variants(spec)]


def _variants(spec: Spec) -> dict[str, str]:
    """Name of a candidate -> variant. One with the name of a usual fabric has a longer name."""
    usual = (*USUAL, AS_IT_IS)
    return {f"compare.{name}" if name in usual else name: name for name in spec.compare}


def host_rate_bps(spec: Spec) -> int:
    """The rate of the fastest cable to a host."""
    topology = spec.topology.build()
    return max(int(topology.cable[topology.ports[host][0]].rate_bps) for host in topology.host)


def candidates_of(
    spec: Spec, fabrics: Sequence[str], rates_bps: Sequence[int]
) -> tuple[list[Candidate], list[Refused]]:
    """The candidates at all rates, and those that the spec's rules refuse."""
    made: list[Candidate] = []
    refused: list[Refused] = []
    for rate_bps in rates_bps:
        for fabric in fabrics:
            name = fabric if len(rates_bps) == 1 else f"{fabric}@{write_rate(rate_bps)}"
            try:
                own = _spec_of(spec, fabric, rate_bps)
                runner_for(PACKETS.name).refuse(own)
            except SpecError as error:
                refused.append(Refused(name, error.findings[0]))
            except EmuError as error:
                refused.append(Refused(name, str(error)))
            else:
                made.append(Candidate(name, fabric, rate_bps, own))
    return made, refused


def _spec_of(spec: Spec, fabric: str, rate_bps: int) -> Spec:
    """Raises SpecError."""
    variant = _variants(spec).get(fabric)
    base = spec if variant is None else spec.variants()[variant]
    if base.traffic != spec.traffic:
        raise UsageError("its traffic is not that of the spec, so its figures say nothing here")
    data = deepcopy(base.to_mapping())
    data.pop("compare", None)
    if fabric in _CHANGES:
        _CHANGES[fabric](data, base)
        data["verify"] = [own for own in data.get("verify") or [] if own.keys() <= _OF_WORKLOADS]
    factor = Fraction(rate_bps, host_rate_bps(base))
    if factor != 1:
        _scale_cables(data["topology"], base, factor)
    return spec_from_mapping(data, source=fabric, folder=Path.cwd())


def _infiniband(data: dict[str, Any], spec: Spec) -> None:
    if not spec.fabric_kind.is_ethernet:
        return
    data["fabric"] = "ib"
    for nic in _nics(data):
        for key in ("cc", *_RECOVERY):
            nic.pop(key, None)


def _lossless(data: dict[str, Any], spec: Spec) -> None:
    _defaults_of_roce(data, spec)
    switches = data.setdefault("switches", {})
    if not _is_on(switches.get("pfc")):
        switches["pfc"] = "on"


def _lossy(data: dict[str, Any], spec: Spec) -> None:
    _defaults_of_roce(data, spec)
    for switches in _layers(data.get("switches") or {}):
        switches.pop("pfc", None)
    data["switches"]["pfc"] = "off"
    data.setdefault("hosts", {}).setdefault("nic", {})["recovery"] = "selective-repeat"


def _defaults_of_roce(data: dict[str, Any], spec: Spec) -> None:
    """RoCE with ECN and congestion control, without any threshold or parameter of the spec's."""
    data["fabric"] = "roce"
    for own in _layers(data.setdefault("switches", {})):
        own.pop("alpha", None)
        for section, keys in _THRESHOLDS.items():
            if isinstance(own.get(section), dict):
                own[section] = {k: v for k, v in own[section].items() if k not in keys}
    if not _is_on(data["switches"].get("ecn")):
        data["switches"]["ecn"] = "on"
    parameters = [entry.key for entry in CONTROLS.values() if entry.key]
    for nic in _nics(data):
        for key in (*parameters, *_RECOVERY):
            nic.pop(key, None)
    nic = data.setdefault("hosts", {}).setdefault("nic", {})
    if not spec.fabric_kind.is_ethernet or nic.get("cc", "none") == "none":
        nic["cc"] = _NIC_CONTROL


_CHANGES: Mapping[str, Callable[[dict[str, Any], Spec], None]] = {
    IB: _infiniband,
    LOSSLESS: _lossless,
    TUNED: _lossless,
    LOSSY: _lossy,
}
"""What makes the spec's data those of a candidate."""


def _layers(section: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A section, and all places that have settings of their own."""
    yield section
    for layer in ("roles", "nodes", "ports"):
        for own in (section.get(layer) or {}).values():
            yield from _layers(own)


def _nics(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for own in _layers(data.get("hosts") or {}):
        if own.get("nic"):
            yield own["nic"]


def _is_on(value: Any) -> bool:
    return isinstance(value, dict) or str(value).lower() in ("on", "yes", "true")


def _scale_cables(topology: dict[str, Any], spec: Spec, factor: Fraction) -> None:
    """Multiplies the rate of each cable, also of those that have it by default."""
    links = getattr(spec.topology, "links", None)
    if isinstance(links, Model):
        given = topology.setdefault("links", {})
        kinds = [name for name in _KINDS_OF_CABLES if hasattr(links, name)]
        cables = [given.setdefault(name, {}) for name in dict.fromkeys([*kinds, *given])]
    else:
        cables = topology["links"]
    cables += [cable for cable in topology.get("cables") or [] if "rate" in cable]
    for cable in cables:
        rate_bps = Link(rate=cable["rate"]).rate_bps if "rate" in cable else Link().rate_bps
        cable["rate"] = write_rate(round(rate_bps * factor))


_KINDS_OF_CABLES = ("host", "fabric")
"""Kinds that have a rate of their own, even if it is the default."""
