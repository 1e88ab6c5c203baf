"""Rules for an InfiniBand subnet: lanes, service levels, subnet managers and partitions."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.diagnostic import Diagnostic, KeyPath, unknown_name
from emu.spec.rules.provenance import for_host, for_switch
from emu.spec.scenario import Spec
from emu.spec.subnet import MANAGEMENT_VL, MANAGERS
from emu.spec.switch import OPERATIONAL_VLS

_ENGINE: KeyPath = ("subnet", "engine")
_SL2VL: KeyPath = ("subnet", "sl2vl")
_ARBITRATION: KeyPath = ("subnet", "vl_arbitration")


def service_levels(spec: Spec) -> dict[int, KeyPath]:
    """The service levels of the spec's packets, each with the key that gives it."""
    found: dict[int, KeyPath] = {}
    for index, entry in enumerate(spec.traffic):
        if entry.priority is not None:
            found.setdefault(entry.priority, ("traffic", index, "priority"))
            continue
        for name in dict.fromkeys(host for pair in entry.pairs(spec.seed) for host in pair):
            found.setdefault(spec.host(name).nic.sl, ("hosts",))
    return found


def service_levels_have_a_lane(spec: Spec) -> Iterator[Diagnostic]:
    if not spec.fabric_kind.has_subnet_manager:
        return
    for sl, path in service_levels(spec).items():
        if spec.subnet.sl2vl[sl] == MANAGEMENT_VL:
            yield Diagnostic(
                _SL2VL,
                f"maps SL {sl} to VL15, which drops its packets, and the traffic uses SL {sl}; "
                "give it a lane from 0 to 14",
                about=(path,),
            )


def lanes_in_use_are_served(spec: Spec) -> Iterator[Diagnostic]:
    if not spec.fabric_kind.has_subnet_manager:
        return
    served = spec.subnet.vl_arbitration.served
    links = {spec.switch(name).credits.vls for name in spec.topology.build().switch} - {1}
    used = {spec.subnet.vl_of_sl(vls)[sl] for vls in links for sl in service_levels(spec)}
    for vl in sorted(used - served - {MANAGEMENT_VL}):
        yield Diagnostic(
            _ARBITRATION,
            f"gives VL {vl} no weight in either table, so its packets would never leave; "
            "add it to high or low",
            about=(_SL2VL, ("traffic",), ("hosts",)),
        )


def lanes_with_buffers_are_in_operation(spec: Spec) -> Iterator[Diagnostic]:
    """A lane must be in operation on at least one of the switches to which the setting applies."""
    most: dict[tuple[KeyPath, int], tuple[int, str]] = {}
    for name in spec.topology.build().switch:
        credits = spec.switch(name).credits
        for vl in credits.lanes:
            key = for_switch(spec, name, "credits", "lanes", str(vl)), vl
            most[key] = max(most.get(key, (0, name)), (credits.vls, name))
    for (path, vl), (vls, name) in most.items():
        if vl >= vls:
            enough = next(more for more in OPERATIONAL_VLS if more > vl)
            yield Diagnostic(
                path,
                f"there is no VL {vl} where vls is {vls}; take it out, or raise vls to {enough}",
                about=(for_switch(spec, name, "credits", "vls"),),
                idle_if_inherited=True,
            )


def ip_packets_fit_into_the_mtu(spec: Spec) -> Iterator[Diagnostic]:
    """Applies to a given ipoib_mtu; the default adapts to the NICs."""
    subnet, hosts = spec.subnet, spec.topology.build().hosts
    small = min(hosts, key=lambda host: spec.host(host.name).nic.mtu)
    mtu = spec.host(small.name).nic.mtu
    if "ipoib_mtu" in subnet.model_fields_set and subnet.ipoib_mtu > mtu:
        yield Diagnostic(
            ("subnet", "ipoib_mtu"),
            f"is above the MTU of {small.name}'s NIC, {mtu}; lower it, or raise hosts.nic.mtu",
            about=(("hosts",),),
        )


ENGINES_WITH_ROOTS = ("updn", "dnup", "ftree")
_ALL_ALIKE = ("ring", "torus")
"""The topologies in which all switches have equivalent positions."""
UNICAST_LIDS = 0xBFFF
"""Unicast LIDs are 1 to this number."""
ENGINES_WITHOUT_LMC = ("ftree", "lash")


def global_routes_are_infinibands(spec: Spec) -> Iterator[Diagnostic]:
    asked = [name for name in spec.topology.build().host if spec.host(name).nic.global_route]
    if asked and spec.fabric_kind.is_ethernet:
        yield Diagnostic(
            for_host(spec, asked[0], "nic", "global_route"),
            "RoCE packets have an IP header in place of a global route header; take it out, or "
            "use fabric: ib",
            about=(("fabric",),),
            idle_if_inherited=True,
        )


def roots_suit_the_engine(spec: Spec) -> Iterator[Diagnostic]:
    path: KeyPath = ("subnet", "roots")
    known = list(spec.topology.build().switch)
    for name in spec.subnet.roots:
        if name not in known:
            yield Diagnostic(path, unknown_name("switch", name, known), about=(("topology",),))
    if spec.subnet.roots and spec.subnet.engine not in ENGINES_WITH_ROOTS:
        yield Diagnostic(
            path,
            f"{spec.subnet.engine} does not use roots; take them out, or use engine: updn",
            about=(_ENGINE,),
        )


def managers_exist(spec: Spec) -> Iterator[Diagnostic]:
    known = list(spec.topology.build().host)
    for name in spec.subnet.managers:
        if name not in known:
            text = unknown_name("host", name, known)
            yield Diagnostic(("subnet", "managers"), text, about=(("topology",),))


def managers_are_served(spec: Spec) -> Iterator[Diagnostic]:
    asked = len(spec.subnet.managers)
    if spec.fabric_kind.has_subnet_manager and asked > MANAGERS:
        yield Diagnostic(
            ("subnet", "managers"),
            f"has {asked} hosts, and ibsim serves {MANAGERS} subnet managers besides the tools; "
            "take some out",
        )


def updn_knows_roots_where_all_are_alike(spec: Spec) -> Iterator[Diagnostic]:
    """OpenSM finds roots by counting hops to hosts. In these topologies all counts are equal."""
    subnet, kind = spec.subnet, spec.topology.kind
    if not spec.fabric_kind.has_subnet_manager or kind not in _ALL_ALIKE or subnet.roots:
        return
    if subnet.engine in ("updn", "dnup") and "engine" in subnet.model_fields_set:
        yield Diagnostic(
            _ENGINE,
            f"{subnet.engine} finds no roots in a {kind}, and OpenSM would use minhop instead; "
            f"name some, e.g. roots: [{next(iter(spec.topology.build().switch))}], or choose "
            "another engine",
            about=(("topology",), ("subnet", "roots")),
        )


def ftree_has_a_tree(spec: Spec) -> Iterator[Diagnostic]:
    kind = spec.topology.kind
    if spec.fabric_kind.has_subnet_manager and kind in _ALL_ALIKE and spec.subnet.engine == "ftree":
        yield Diagnostic(
            _ENGINE,
            f"ftree routes trees, and a {kind} is not a tree: OpenSM would use minhop instead, "
            "with any roots; use engine: updn with roots, e.g. "
            f"[{next(iter(spec.topology.build().switch))}], or minhop",
            about=(("topology",),),
        )


def engine_has_several_paths(spec: Spec) -> Iterator[Diagnostic]:
    if spec.subnet.lmc and spec.subnet.engine in ENGINES_WITHOUT_LMC:
        yield Diagnostic(
            ("subnet", "lmc"),
            f"{spec.subnet.engine} makes one path to a host, not {1 << spec.subnet.lmc}; "
            "use lmc: 0, or engine: updn, minhop or dfsssp",
            about=(_ENGINE,),
        )


def partitions_are_sound(spec: Spec) -> Iterator[Diagnostic]:
    known = list(spec.topology.build().host)
    owner: dict[int, str] = {}
    for name, partition in spec.subnet.partitions.items():
        path: KeyPath = ("subnet", "partitions", name)
        if not partition.members:
            text = "has no members, so no host could use its P_Key; name some in full or limited"
            yield Diagnostic(path, text)
        first = owner.setdefault(partition.pkey, name)
        if first != name:
            text = f"{first} has P_Key {partition.pkey:#x} already; give each its own"
            yield Diagnostic((*path, "pkey"), text)
        for kind, hosts in (("full", partition.full), ("limited", partition.limited)):
            for host in hosts:
                if host not in known:
                    text = unknown_name("host", host, known)
                    yield Diagnostic((*path, kind), text, about=(("topology",),))
        for host in sorted(set(partition.full) & set(partition.limited)):
            text = f"{host} is also a full member; keep it in one of them"
            yield Diagnostic((*path, "limited"), text, about=((*path, "full"),))


def senders_are_in_their_partition(spec: Spec) -> Iterator[Diagnostic]:
    partitions = spec.subnet.partitions
    for index, entry in enumerate(spec.traffic):
        path: KeyPath = ("traffic", index, "partition")
        if entry.partition is None:
            continue
        if entry.partition not in partitions:
            text = unknown_name("partition", entry.partition, list(partitions))
            yield Diagnostic(path, text, about=(("subnet", "partitions"),))
            continue
        members = partitions[entry.partition].members
        for source in dict.fromkeys(source for source, _ in entry.pairs(spec.seed)):
            if source not in members:
                yield Diagnostic(
                    path,
                    f"{source} is not a member of {entry.partition}, so it has no P_Key to send "
                    "with; make it one, or use another partition",
                    about=(("subnet", "partitions"), ("traffic", index)),
                )


def lids_suffice(spec: Spec) -> Iterator[Diagnostic]:
    if not spec.fabric_kind.has_subnet_manager:
        return
    topology, lmc = spec.topology.build(), spec.subnet.lmc
    needed = (len(topology.hosts) << lmc) + len(topology.switches)
    if needed > UNICAST_LIDS:
        text = (
            f"{len(topology.hosts):,} hosts with {1 << lmc} LIDs each and "
            f"{len(topology.switches):,} switches need {needed:,} LIDs; InfiniBand has "
            f"{UNICAST_LIDS:,}, so take fewer hosts"
        )
        if lmc:
            yield Diagnostic(("subnet", "lmc"), f"{text}, or a lower lmc", (("topology",),))
        else:
            yield Diagnostic(("topology",), text)


RULES = (
    lids_suffice,
    service_levels_have_a_lane,
    lanes_in_use_are_served,
    lanes_with_buffers_are_in_operation,
    ip_packets_fit_into_the_mtu,
    global_routes_are_infinibands,
    roots_suit_the_engine,
    managers_exist,
    managers_are_served,
    updn_knows_roots_where_all_are_alike,
    ftree_has_a_tree,
    engine_has_several_paths,
    partitions_are_sound,
    senders_are_in_their_partition,
)
