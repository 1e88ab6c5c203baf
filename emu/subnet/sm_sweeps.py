"""The subnet manager of a run: its options from the spec, and its sweeps.

Each link that goes down or comes up causes one more sweep. On the virtual clock all sweeps are
made before the run, for every state of the fabric that the spec's faults will cause. The tables
of a sweep are in use a set time (`convergence`) after the link has changed. In a lab, OpenSM runs
beside the fabric (`emu.lab.live_subnet`).

Path records are queried after each sweep. Queue pairs connected after a sweep use the new service
levels once the last switch has its table; existing ones keep theirs (emu.subnet.paths). A note
reports whether the mix forms a credit loop. It covers the queue pairs of the spec's traffic, which
all connect at the start, but not those that programs connect later by verbs.

OpenSM's decisions are repeatable, except those of dfsssp, which assigns service levels to spare
lanes at random. Runs with dfsssp differ in details.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

from emu.spec.outages import outages
from emu.spec.scenario import Spec
from emu.spec.subnet import MANAGEMENT_VL
from emu.subnet.manager import ManagedFabric
from emu.subnet.policy import Membership, Policy
from emu.subnet.routing_check import approved, engine_note, kept_levels
from emu.subnet.subnet import Resweep, Subnet
from topologies.graph import Cable, Topology


def policy_of(spec: Spec) -> Policy:
    """The options of the subnet manager, from the spec's `subnet:`."""
    subnet = spec.subnet
    vls = max(spec.switch(name).credits.vls for name in spec.topology.build().switch)
    tables = subnet.vl_arbitration
    return Policy(
        engine=subnet.engine,
        roots=subnet.roots,
        lmc=subnet.lmc,
        vls=vls,
        sl2vl=subnet.sl2vl,
        vlarb_high=_lanes_below(vls, tables.high),
        vlarb_low=_lanes_below(vls, tables.low),
        high_limit=tables.high_limit,
        head_of_queue_lifetime=subnet.head_of_queue_lifetime,
        leaf_head_of_queue_lifetime=subnet.leaf_head_of_queue_lifetime,
        vl_stall_count=subnet.vl_stall_count,
        part_enforce=subnet.part_enforce,
        partitions={
            name: Membership(partition.pkey, partition.full, partition.limited)
            for name, partition in subnet.partitions.items()
        },
    )


def _lanes_below(vls: int, weights: dict[int, int]) -> dict[int, int]:
    return {vl: weight for vl, weight in weights.items() if vl < min(vls, MANAGEMENT_VL)}


def manager_hosts(spec: Spec, topology: Topology) -> tuple[str, ...]:
    """The hosts that run OpenSM, the master first: `subnet.managers`, or the first host whose cable
    no fault cuts."""
    if spec.subnet.managers:
        return spec.subnet.managers
    cut = {end for _, down in outages(spec) for cable in down for end in (cable.a, cable.b)}
    hosts = tuple(topology.host)
    safe = tuple(name for name in hosts if topology.ports[name][0] not in cut)
    return (safe or hosts)[:1]


def pairs_of(spec: Spec, *, all_pairs: bool = False) -> set[tuple[str, str]]:
    """Pairs of hosts that exchange packets, in both directions. With `all_pairs`, all pairs."""
    if all_pairs:
        return set(permutations(spec.topology.build().host, 2))
    return {
        pair
        for flow in spec.fabric_flows()
        for pair in ((flow.src, flow.dst), (flow.dst, flow.src))
    }


def swept(spec: Spec, topology: Topology, *others: Spec, all_pairs: bool = False) -> Subnet | None:
    """OpenSM's decisions for an InfiniBand fabric; None for another. See `manage`."""
    if not spec.fabric_kind.has_subnet_manager:
        return None
    with TemporaryDirectory(prefix="emu-subnet-") as workdir:
        return manage(spec, topology, Path(workdir), *others, all_pairs=all_pairs)


def manage(
    spec: Spec, topology: Topology, workdir: Path, *others: Spec, all_pairs: bool = False
) -> Subnet:
    """Computes the subnet manager's decisions for the start of a run and for all link changes.

    They hold for `others`, too: specs of the same fabric and faults with other traffic. With
    `all_pairs`, any host may send to any other.

    Raises HostError, FabricError; also if OpenSM does not do what the spec asks for.
    """
    master = manager_hosts(spec, topology)[:1]
    pairs = pairs_of(spec, all_pairs=all_pairs).union(*map(pairs_of, others))
    with ManagedFabric(topology, policy_of(spec), workdir, hosts=master) as managed:
        first = approved(spec, topology, managed.subnet(pairs), pairs)
        swept: dict[frozenset[Cable], Resweep] = {frozenset(): Resweep(0, first.lfts, first.levels)}
        later = []
        for at_ps, down in outages(spec):
            if down not in swept:
                new = Resweep(at_ps, managed.without(down), managed.levels(pairs))
                notes = _notes(spec, topology, first, new, managed)
                swept[down] = new._replace(notes=tuple(notes))
            later.append(swept[down]._replace(at_ps=at_ps))
    return replace(first, later=tuple(later))


def _notes(
    spec: Spec, topology: Topology, first: Subnet, later: Resweep, managed: ManagedFabric
) -> Iterator[str]:
    """Of a sweep in the course of a run, the last there was."""
    engine = managed.opensm.engine_used()
    if engine != first.engine:
        yield engine_note(first.engine, engine)
    now = replace(first, lfts=later.lfts, levels=later.levels)
    paths = ((src, dst) for src, levels in first.levels.items() for dst in levels)
    kept = kept_levels(spec, topology, [first.levels], now, managed.paths_left(paths))
    if kept:
        yield kept.note
