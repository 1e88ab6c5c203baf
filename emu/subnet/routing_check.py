"""Checks that the subnet manager has done what a spec asks for.

If an engine cannot route a fabric, OpenSM continues with minhop and only logs it. If the spec
names the engine, this is an error before the run; if not, the results have a note.

lash and dfsssp give paths that would form a credit loop different service levels. This works
only if the links have enough lanes: levels that share a lane do not separate paths. In a credit
loop each port waits for room behind the next port of a path:

    (ring1:ring2, VL 0) ─▶ (ring2:ring3, VL 0) ─▶ ... ─▶ (ring1:ring2, VL 0)

Source: Dally and Seitz, Deadlock-Free Message Routing in Multiprocessor Interconnection
Networks, IEEE Trans. Computers, 1987.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from emu.errors import FabricError
from emu.spec.lanes import lanes_of_link
from emu.spec.rules.subnet import ENGINES_WITH_ROOTS
from emu.spec.scenario import Spec
from emu.subnet.subnet import PathSLs, Subnet
from topologies.graph import Port, Topology

_SHOWN = 4
"""The most ports of a credit loop that an error names."""

Lane = tuple[Port, int]
"""An output port and its lane."""


def approved(
    spec: Spec, topology: Topology, subnet: Subnet, pairs: Iterable[tuple[str, str]]
) -> Subnet:
    """The subnet, with a note where another engine than the default one made its tables.

    `pairs`: source and destination host of the paths that will be used.

    Raises FabricError when it was not the engine asked for, and when the paths of an engine
    that keeps them apart form a credit loop for want of lanes.
    """
    if subnet.levels:
        _refuse_credit_loops(spec, topology, subnet, pairs)
    wanted = spec.subnet.engine
    if subnet.engine == wanted:
        return subnet
    fallback = (
        f"OpenSM cannot route this fabric by {wanted} and continued with {subnet.engine}, whose "
        "paths may form a credit loop"
    )
    if "engine" in spec.subnet.model_fields_set:
        raise FabricError(f"subnet.engine: {fallback}; {_remedy(spec, subnet.engine)}")
    return replace(subnet, notes=(f"{fallback}; {_remedy(spec, subnet.engine)}",))


def _remedy(spec: Spec, used: str) -> str:
    engine, first = spec.subnet.engine, next(iter(spec.topology.build().switch))
    if engine in ENGINES_WITH_ROOTS and engine != "ftree" and not spec.subnet.roots:
        return f"name its roots, e.g. subnet.roots: [{first}], or ask for engine: {used}"
    return f"use engine: updn with roots, e.g. [{first}], or ask for engine: {used}"


def engine_note(wanted: str, used: str) -> str:
    """Of a sweep in the course of a run."""
    return f"OpenSM could not route the remaining links by {wanted}, and continued with {used}"


@dataclass(frozen=True)
class KeptLevels:
    """The effect of a sweep during a run on queue pairs that keep their service levels."""

    changed: int
    """The number of paths with another level now."""
    paths: int
    credit_loop: str
    """The ports of a credit loop that they form with the new tables; empty if there is none."""

    @property
    def note(self) -> str:
        return (
            f"after a sweep {self.changed} of {self.paths} paths have another service level; queue "
            "pairs that are connected keep theirs, and by the new tables their paths form "
            + (f"a credit loop: {self.credit_loop}" if self.credit_loop else "no credit loop")
        )


def kept_levels(
    spec: Spec,
    topology: Topology,
    connected: Iterable[PathSLs],
    now: Subnet,
    left: Collection[tuple[str, str]],
) -> KeptLevels | None:
    """The levels that `connected` queue pairs keep after a sweep, for paths that are `left`.

    Where a path may have one of several levels, all are considered together. The engine of the
    sweep may have no levels. None if no path has changed its level and there is no credit loop.
    """
    kept = {
        (src, dst, levels[src][dst])
        for levels in connected
        for src, dst in left
        if dst in levels.get(src, {})
    }
    paths = {(src, dst) for src, dst, _ in kept}
    changed = {
        (src, dst) for src, dst, level in kept if now.levels.get(src, {}).get(dst, level) != level
    }
    loop = _credit_loop(spec, topology, now, kept)
    if not changed and not loop:
        return None
    return KeptLevels(len(changed), len(paths), _shown(topology, loop) if loop else "")


def _refuse_credit_loops(
    spec: Spec, topology: Topology, subnet: Subnet, pairs: Iterable[tuple[str, str]]
) -> None:
    paths = [(src, dst, subnet.levels[src][dst]) for src, dst in pairs]
    loop = _credit_loop(spec, topology, subnet, paths)
    if loop is None:
        return
    lanes = min(spec.switch(switch).credits.vls for switch in topology.switch)
    raise FabricError(
        f"subnet.engine: {subnet.engine} keeps paths apart by service levels, and for want of "
        f"lanes (switches.credits.vls: {lanes}) they form a credit loop nevertheless: "
        f"{_shown(topology, loop)}; raise switches.credits.vls, to 8 for one, with a lane for "
        "each service level in subnet.sl2vl, or use engine: updn with roots"
    )


def _shown(topology: Topology, loop: Sequence[Lane]) -> str:
    names = [topology.port_name[port] for port, _ in loop]
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _credit_loop(
    spec: Spec, topology: Topology, subnet: Subnet, paths: Iterable[tuple[str, str, int]]
) -> list[Lane] | None:
    """Lanes that wait for each other, each for the next; None if there is no credit loop.

    `paths`: source host, destination host and service level of each path.
    """
    behind: dict[Lane, dict[Lane, None]] = {}  # an order, so that an error is always the same
    lane_of = {
        port: spec.subnet.vl_of_sl(lanes_of_link(spec, topology, port)) for port in topology.peer
    }
    for src, dst, level in sorted(paths):
        for offset in range(1 << subnet.lmc):
            path = subnet.path(topology, src, dst, offset)
            lanes = [(port, lane_of[port][level]) for port in path]
            for lane, following in pairwise(lanes):
                behind.setdefault(following, {})[lane] = None
    try:
        TopologicalSorter(behind).prepare()
    except CycleError as error:
        loop: list[Lane] = error.args[1]
        return loop[:-1]
    return None
