"""The subnet manager's part in a spec: what it is told, and what it decides in the course of a run.

A link that goes down or comes up is one more sweep. On the virtual clock nobody waits
for it: every state of the fabric that the spec's faults will bring about is swept
beforehand, and its tables are in force a set time (`convergence`) after the link has
changed. In a lab OpenSM lives beside the fabric (`emu.lab.live_subnet`).

Path records are asked for after each of these sweeps. Who connects then has the new service
levels, in force when the last switch has its table; queue pairs that are connected keep theirs
(emu.subnet.paths), and a note says whether that forms a credit loop. It is about those of the
spec's traffic, which all connect at the start; who does later, by verbs, is not judged.

OpenSM decides alike each time, with one exception: dfsssp draws by lot which service
levels share lanes that are to spare. A run with it ends alike, but not byte for byte.
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
from emu.subnet import ManagedFabric, Membership, Policy, Subnet
from emu.subnet.routing_check import approved, engine_note, kept_levels
from emu.subnet.subnet import Resweep
from topologies.graph import Cable, Topology


def policy_of(spec: Spec) -> Policy:
    """What `subnet:` says, as the subnet manager's options."""
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
    """Where OpenSM runs, the master first: the first host whose own cable no fault takes away,
    unless `subnet.managers` says."""
    if spec.subnet.managers:
        return spec.subnet.managers
    cut = {end for _, down in outages(spec) for cable in down for end in (cable.a, cable.b)}
    hosts = tuple(topology.host)
    safe = tuple(name for name in hosts if topology.ports[name][0] not in cut)
    return (safe or hosts)[:1]


def pairs_of(spec: Spec, *, everybody: bool = False) -> set[tuple[str, str]]:
    """Hosts that exchange packets, both ways round; `everybody` does who has IP."""
    if everybody:
        return set(permutations(spec.topology.build().host, 2))
    return {
        pair
        for flow in spec.fabric_flows()
        for pair in ((flow.src, flow.dst), (flow.dst, flow.src))
    }


def swept(spec: Spec, topology: Topology, *others: Spec, everybody: bool = False) -> Subnet | None:
    """What OpenSM makes of an InfiniBand fabric; of any other, nothing. See `manage`."""
    if not spec.fabric_kind.has_subnet_manager:
        return None
    with TemporaryDirectory(prefix="emu-subnet-") as workdir:
        return manage(spec, topology, Path(workdir), *others, everybody=everybody)


def manage(
    spec: Spec, topology: Topology, workdir: Path, *others: Spec, everybody: bool = False
) -> Subnet:
    """Beforehand: what the subnet manager decides at the start of a run, and when links change.

    It is for `others`, too: specs of the same fabric and faults with a traffic of their own.
    With `everybody` any host may talk to any other, whatever their traffic.

    Raises HostError, FabricError; also where it does not do what the spec asks for.
    """
    master = manager_hosts(spec, topology)[:1]
    pairs = pairs_of(spec, everybody=everybody).union(*map(pairs_of, others))
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
