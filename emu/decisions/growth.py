"""The cluster at larger sizes: by packets where a run is short enough, else by the flow model.

Sizes come from the user (`--grow topology.leaves=8,16`), or are two and four times the hosts:

    leaf-spine    leaves, so that each leaf keeps its uplinks
    rail          servers
    fat-tree      k, the least with so many hosts

The workload must grow with the fabric. It does where entries name `among: all`; traffic among named
hosts stays as it is, and then there is nothing to learn from a larger fabric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emu.decisions.candidates import Candidate, Refused
from emu.errors import EmuError
from emu.measure.run_estimate import estimate_of
from emu.models import FLOW, PACKETS
from emu.spec.from_code import with_values
from emu.spec.scenario import Spec
from emu.spec.topology import FatTree, LeafSpine, Rail
from emu.sweeps.work import runner_for

_FACTORS = (2, 4)
_MOST_BYTES = 4_000_000_000
"""Of memory of a run by packets."""


@dataclass(frozen=True)
class Size:
    """A size of the cluster."""

    hosts: int
    settings: Mapping[str, Any]
    """The keys that make it; none for the spec's own size."""
    model: str
    """`packets` or `flow`."""

    def of(self, spec: Spec) -> Spec:
        """A candidate's spec at this size."""
        return with_values(spec, self.settings, source=spec.name) if self.settings else spec


def sizes_of(
    candidates: Sequence[Candidate], grow: Mapping[str, Sequence[Any]], longest_seconds: float
) -> tuple[list[Size], list[Refused]]:
    """The further sizes of all candidates, and those that cannot be. If the flow model does some,
    it also does the spec's own size, which shows how far it is off.

    `grow`: keys with a value for each further size; empty for the usual ones.
    """
    own = [candidate.spec for candidate in candidates]
    refused: list[Refused] = []
    sizes: list[Size] = []
    for settings in _chosen(grow) if grow else _usual(own[0]):
        name = ", ".join(f"{key} {value}" for key, value in settings.items())
        made = _larger(own, settings, longest_seconds)
        if isinstance(made, Size):
            sizes.append(made)
        else:
            refused.append(Refused(name, made))
    if not sizes and not refused:
        reason = "this kind of topology has no usual larger size; name keys with --grow"
        return [], [Refused("larger clusters", reason)]
    if any(size.model == FLOW.name for size in sizes):
        sizes.insert(0, Size(len(own[0].topology.build().host), {}, FLOW.name))
    return sizes, refused


def _chosen(grow: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*grow.values(), strict=True):
        yield dict(zip(grow, values, strict=True))


def _usual(spec: Spec) -> Iterator[dict[str, Any]]:
    topology = spec.topology
    for factor in _FACTORS:
        if isinstance(topology, LeafSpine):
            yield {"topology.leaves": topology.leaves * factor}
        elif isinstance(topology, Rail):
            yield {"topology.servers": topology.servers * factor}
        elif isinstance(topology, FatTree):
            yield {"topology.k": _k_with(topology.host_count * factor)}


def _k_with(hosts: int) -> int:
    """The least even k of a fat tree with so many hosts."""
    k = 2
    while k**3 // 4 < hosts:
        k += 2
    return k


def _larger(own: Sequence[Spec], settings: Mapping[str, Any], longest_seconds: float) -> Size | str:
    """A size, or why it cannot be."""
    try:
        specs = [with_values(spec, settings, source=spec.name) for spec in own]
    except EmuError as error:
        return str(error)
    if _busy_hosts(specs[0]) <= _busy_hosts(own[0]):
        return "no more hosts have traffic than before: name them by `among: all`"
    model, why = PACKETS.name, ""
    estimates = [estimate_of(spec, threads=1) for spec in specs]
    if any(e.seconds > longest_seconds or e.memory_bytes > _MOST_BYTES for e in estimates):
        longest = max(estimates, key=lambda estimate: estimate.seconds)
        model, why = FLOW.name, f"by packets a run takes {longest}; by the flow model: "
    for spec in specs:
        try:
            runner_for(model).refuse(spec)
        except EmuError as error:
            return f"{why}{error}"
    return Size(len(specs[0].topology.build().host), settings, model)


def _busy_hosts(spec: Spec) -> int:
    return len({host for flow in spec.fabric_flows() for host in (flow.src, flow.dst)})
