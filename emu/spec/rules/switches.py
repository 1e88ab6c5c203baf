"""What must hold for a switch when all that is said about it is merged."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.finding import Finding, KeyPath, there_is_no
from emu.spec.headroom import reserved_of
from emu.spec.rules.given import for_switch
from emu.spec.scenario import Spec
from emu.spec.switch import Curve, Pfc, SwitchSpec
from emu.units import write_size, write_time

_TOPOLOGY: KeyPath = ("topology",)

HEADERS = 80
"""At most this many bytes come with a payload: Ethernet to RETH, ICRC and FCS."""


def _switches(spec: Spec) -> Iterator[tuple[str, SwitchSpec]]:
    for name in spec.topology.build().switch:
        yield name, spec.switch(name)


def _ethernet_switches(spec: Spec) -> Iterator[tuple[str, SwitchSpec]]:
    """Those whose PFC and ECN count; on InfiniBand these keys are not used."""
    if spec.fabric == "roce":
        yield from _switches(spec)


def roles_and_nodes_exist(spec: Spec) -> Iterator[Finding]:
    topology = spec.topology.build()
    roles = sorted({switch.role for switch in topology.switches})
    for section, what, named, known in (
        ("roles", "role", spec.switches.roles, roles),
        ("nodes", "switch", spec.switches.nodes, list(topology.switch)),
    ):
        for name in named:
            if name not in known:
                path = ("switches", section, name)
                yield Finding(path, there_is_no(what, name, known), about=(_TOPOLOGY,))


def ports_exist(spec: Spec) -> Iterator[Finding]:
    """A name that all switches or a role have must be that of a neighbour of one of them."""
    topology = spec.topology.build()
    neighbours = {
        switch.name: [topology.port_name[p].partition(":")[2] for p in topology.ports[switch.name]]
        for switch in topology.switches
    }
    for path, said, names in _layers(spec):
        known = sorted({port for name in names for port in neighbours.get(name, ())})
        for port in said.ports:
            if port not in known:
                text = there_is_no("neighbour", port, known)
                yield Finding((*path, "ports", port), text, about=(_TOPOLOGY,))


def _layers(spec: Spec) -> Iterator[tuple[KeyPath, SwitchSpec, list[str]]]:
    """Where switches are told something, what, and which switches these are."""
    switches = spec.topology.build().switches
    yield ("switches",), spec.switches, [switch.name for switch in switches]
    for role, said in spec.switches.roles.items():
        yield ("switches", "roles", role), said, [s.name for s in switches if s.role == role]
    for name, said in spec.switches.nodes.items():
        yield ("switches", "nodes", name), said, [name]


def xon_is_not_above_xoff(spec: Spec) -> Iterator[Finding]:
    for name, switch in _ethernet_switches(spec):
        pfc = switch.pfc
        if pfc is not None and 0 < pfc.xoff.size_bytes < pfc.xon_bytes:
            yield Finding(
                for_switch(spec, name, "pfc", "xon"),
                f"xon ({write_size(pfc.xon_bytes)}) is above xoff ({pfc.xoff}): "
                "the sender would be let go before it was stopped; lower xon or raise xoff",
                about=(for_switch(spec, name, "pfc", "xoff"),),
            )


def lossless_priorities_fit_into_the_buffer(spec: Spec) -> Iterator[Finding]:
    """Every port may fill xoff and headroom of every lossless priority at the same time."""
    topology = spec.topology.build()
    for name, switch in _ethernet_switches(spec):
        pfc = switch.pfc
        if pfc is None:
            continue
        ports, priorities = len(topology.ports[name]), len(set(pfc.priorities))
        xoff = ports * priorities * pfc.xoff.size_bytes
        reserved = reserved_of(spec, name)
        needed = xoff + max(reserved, 1)
        if needed > switch.buffer_bytes:
            words, remedy = _headroom_in_words(pfc)
            yield Finding(
                for_switch(spec, name, "pfc", "xoff" if pfc.headroom_bytes is None else "headroom"),
                f"{ports} ports x {priorities} priorities x xoff {pfc.xoff} and {words} of "
                f"{write_size(reserved)} for all ports together are more than the buffer of "
                f"{write_size(switch.buffer_bytes)}, so lossless packets could be dropped; "
                f"{remedy}, or raise buffer",
                about=(
                    for_switch(spec, name, "pfc", "xoff"),
                    for_switch(spec, name, "pfc", "headroom"),
                    for_switch(spec, name, "pfc", "priorities"),
                    for_switch(spec, name, "buffer"),
                    for_switch(spec, name, "reserved"),
                    _TOPOLOGY,
                ),
            )


def _headroom_in_words(pfc: Pfc) -> tuple[str, str]:
    if pfc.headroom_bytes is None:
        return "automatic headroom", "lower xoff"
    return "headroom", "lower xoff or headroom"


def kmin_is_not_above_kmax(spec: Spec) -> Iterator[Finding]:
    for name, keys, curve in _curves(spec):
        if curve.kmin_bytes > curve.kmax_bytes:
            yield Finding(
                for_switch(spec, name, *keys, "kmin"),
                f"kmin ({write_size(curve.kmin_bytes)}) is above kmax "
                f"({write_size(curve.kmax_bytes)}): marking would end before it began; "
                "lower kmin or raise kmax",
                about=(for_switch(spec, name, *keys, "kmax"),),
            )


def kmin_can_be_reached(spec: Spec) -> Iterator[Finding]:
    for name, keys, curve in _curves(spec):
        buffer = spec.switch(name).buffer_bytes
        if curve.kmin_bytes >= buffer:
            yield Finding(
                for_switch(spec, name, *keys, "kmin"),
                f"no queue gets as deep as kmin ({write_size(curve.kmin_bytes)}) in a buffer of "
                f"{write_size(buffer)}; lower kmin, or raise buffer",
                about=(for_switch(spec, name, "buffer"),),
            )


def _curves(spec: Spec) -> Iterator[tuple[str, tuple[str, ...], Curve]]:
    """Every curve: the switch it is of, the keys that lead to it, and itself."""
    for name, switch in _ethernet_switches(spec):
        ecn = switch.ecn
        if ecn is None:
            continue
        yield name, ("ecn",), ecn
        for queue in ecn.queues:
            curve = ecn.curve(queue)
            if curve is not None:
                yield name, ("ecn", "queues", str(queue)), curve


def buffers_hold_a_packet(spec: Spec) -> Iterator[Finding]:
    mtu = spec.largest_mtu
    for name, switch in _switches(spec):
        for size, keys in (
            (switch.buffer_bytes, ("buffer",)),
            (switch.credits.buffer_bytes, ("credits", "buffer")),
        ):
            if size < mtu + HEADERS:
                yield Finding(
                    for_switch(spec, name, *keys),
                    f"{write_size(size)} cannot hold one packet of mtu {mtu} and its headers; "
                    "raise it, or lower hosts.nic.mtu",
                    about=(("hosts",),),
                )


def strict_priorities_have_no_weight(spec: Spec) -> Iterator[Finding]:
    for name, switch in _switches(spec):
        scheduling = switch.scheduling
        for priority in sorted(scheduling.weights.keys() & set(scheduling.strict)):
            yield Finding(
                for_switch(spec, name, "scheduling", "weights", str(priority)),
                f"priority {priority} is strict, so its weight is never asked for; "
                "take it out of weights or out of strict",
                about=(for_switch(spec, name, "scheduling", "strict"),),
            )


def watchdogs_have_time_for_what_they_watch(spec: Spec) -> Iterator[Finding]:
    for name, switch in _ethernet_switches(spec):
        dog = switch.watchdog
        if dog is None:
            continue
        if dog.poll_ps > dog.detection_ps:
            yield Finding(
                for_switch(spec, name, "watchdog", "poll"),
                f"it looks every {write_time(dog.poll_ps)}, so a storm of "
                f"{write_time(dog.detection_ps)} (detection) would end unseen; lower poll",
                about=(for_switch(spec, name, "watchdog", "detection"),),
            )
        elif dog.detection_ps + dog.poll_ps > spec.time_limit_ps:
            yield Finding(
                for_switch(spec, name, "watchdog", "detection"),
                f"the run is over (time_limit is {write_time(spec.time_limit_ps)}) before a "
                f"storm is detected ({write_time(dog.detection_ps + dog.poll_ps)}, detection and "
                "poll); lower these, or raise time_limit",
                about=(for_switch(spec, name, "watchdog", "poll"), ("time_limit",)),
            )


RULES = (
    roles_and_nodes_exist,
    ports_exist,
    xon_is_not_above_xoff,
    lossless_priorities_fit_into_the_buffer,
    kmin_is_not_above_kmax,
    kmin_can_be_reached,
    buffers_hold_a_packet,
    strict_priorities_have_no_weight,
    watchdogs_have_time_for_what_they_watch,
)
